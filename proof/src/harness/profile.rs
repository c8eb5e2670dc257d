//! How long to try, and with which dice.

/// The name of the variable that asks for the long form.
const LONG: &str = "SEMEL_TEST_LONG";

/// The name of the variable that repeats an earlier run.
const SEED: &str = "SEMEL_TEST_SEED";

/// How long to try, and with which dice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// What every choice is drawn from. The scheduler of the machine has its own dice: the same seed makes the same
    /// choices, not the same interleaving.
    pub seed: u64,
    /// Several minutes instead of seconds.
    pub long: bool,
}

// === impl Profile ===

impl Profile {
    /// As the environment says: `SEMEL_TEST_LONG=1`, and `SEMEL_TEST_SEED` to repeat a run.
    ///
    /// # Errors
    /// When the seed is not a number.
    #[expect(
        clippy::disallowed_methods,
        reason = "a test has no command line: the environment is how it is told"
    )]
    pub fn from_environment() -> anyhow::Result<Self> {
        let seed = match std::env::var(SEED) {
            Ok(text) => text
                .parse()
                .map_err(|_| anyhow::anyhow!("{SEED} must be a number, not {text:?}"))?,
            Err(_) => rand::random_range(0..1_000_000_000),
        };
        let long = std::env::var(LONG).is_ok_and(|value| value == "1");
        Ok(Self { seed, long })
    }

    /// The command that makes the same choices again.
    #[must_use]
    pub fn command(&self, test: &str) -> String {
        let long = if self.long {
            format!("{LONG}=1 ")
        } else {
            String::new()
        };
        let seed = self.seed;
        format!("{long}{SEED}={seed} cargo test -p proof --test {test}")
    }
}
