//! Where the gate of a configuration answers operators: all that a command needs of the file, which may be wrong
//! elsewhere.

use super::fields::Level;
use super::load::{FILE_DEFAULT, parse};
use super::mistakes::{Location, Mistakes};
use super::section::Section;
use super::values::{address, text};
use semel_gate::settings::Secret;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// A gate, as an operator on its host sees it.
#[derive(Debug)]
pub(crate) struct AdminAddress {
    pub(crate) address: SocketAddr,
    pub(crate) token: Option<Secret>,
}

/// Reads it from the named file, or from the default one; without a file it is the default address.
///
/// # Errors
/// When the file cannot be read, or does not say it as a gate would understand it.
pub(crate) fn admin_address(file: Option<&Path>) -> Result<AdminAddress, Mistakes> {
    let default = Path::new(FILE_DEFAULT);
    let path = file.or_else(|| default.exists().then_some(default));
    let mut mistakes = Mistakes::none(path.map(|path| path.display().to_string()));
    let text = match path.map(std::fs::read_to_string).transpose() {
        Ok(text) => text.unwrap_or_default(),
        Err(error) => {
            let says = format!("cannot be read: {error}; name the gate with --admin");
            mistakes.add(Location::Whole, None, says);
            return mistakes.unless_any(None);
        }
    };
    let found = read(&text, &mut mistakes);
    mistakes.unless_any(found)
}

fn read(file: &str, mistakes: &mut Mistakes) -> Option<AdminAddress> {
    let mut members = parse(file, mistakes)?;
    members.retain(|member| ["admin", "admin_token"].contains(&member.name.as_str()));
    let mut section = Section::open(Level::Gate, &members, Location::Whole, None, mistakes);
    Some(AdminAddress {
        address: reached(section.value("admin", address)),
        token: section.take("admin_token", text).map(Secret),
    })
}

/// Who listens everywhere is asked here.
fn reached(listens: SocketAddr) -> SocketAddr {
    let ip = match listens.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip @ (IpAddr::V4(_) | IpAddr::V6(_)) => ip,
    };
    SocketAddr::new(ip, listens.port())
}
