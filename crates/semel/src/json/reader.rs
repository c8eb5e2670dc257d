//! One pass over a JSON text: where the wanted parts stand, and the encoding of the whole.
//!
//! Of an open object only places are kept: where each name stands in the text, and where its value's
//! short encoding stands. When the object ends its members are sorted, a name that is there twice is
//! found, and one encoding replaces them all.

use super::encoding::{Encoding, Encodings, Offset, Sum, Watermark};
use super::literal::Literal;
use super::tokens::{Container, Scalar, Token, Tokens};
use super::{MEMBERS_MAX, Refused, shown};
use std::ops::Range;

/// The fewest bytes that a member takes in a text: `"":0` and what parts it from the next.
const MEMBER_BYTES_MIN: usize = 5;

/// What a text says.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    /// Where the value of each wanted pointer stands.
    pub(crate) places: Vec<Option<Range<usize>>>,
    /// The encoding of the whole.
    pub(crate) whole: Encoding,
}

/// A JSON pointer (RFC 6901), taken apart.
#[derive(Clone, Debug)]
pub(crate) struct Pointer {
    segments: Vec<Segment>,
}

#[derive(Clone, Debug)]
struct Segment {
    name: String,
    index: Option<usize>,
}

struct Reader<'a, 'r> {
    text: &'a str,
    wanted: &'r [Pointer],
    room: &'r mut dyn FnMut(usize) -> bool,
    /// What is open, the innermost last.
    frames: Vec<Frame<'a>>,
    /// The members of all open objects.
    members: Vec<OpenMember>,
    /// The encodings of their values.
    encodings: Encodings,
    /// The wanted pointers that lead into each open value, one frame's behind the other's.
    leading: Vec<usize>,
    places: Vec<Option<Range<usize>>>,
    whole: Option<Encoding>,
}

/// An open array or object.
struct Frame<'a> {
    kind: Container,
    at: usize,
    /// Whether a pointer names it.
    is_wanted: bool,
    /// Of an array: the sum of its items so far, and how many they are.
    sum: Sum,
    items: usize,
    /// Of an object: the name whose value comes next, and what is its own of the shared stacks.
    name: Literal<'a>,
    name_at: usize,
    /// Whether all its names stand for themselves.
    plain: bool,
    first_member: usize,
    encodings: Watermark,
    first_leading: usize,
}

/// A member of an open object.
struct OpenMember {
    name_at: u32,
    name_bytes: u32,
    value: Offset,
}

/// Reads a text once. `room` is asked before memory is taken that grows with the text; its answers
/// add up to less than three times the text.
pub(crate) fn read(
    bytes: &[u8],
    wanted: &[Pointer],
    room: &mut dyn FnMut(usize) -> bool,
) -> Result<Read, Refused> {
    let text = std::str::from_utf8(bytes).map_err(|_| Refused::NotJson)?;
    if u32::try_from(text.len()).is_err() {
        return Err(Refused::TooLarge);
    }
    Reader::new(text, wanted, room)?.run()
}

// === impl Pointer ===

impl Pointer {
    /// Takes a pointer apart that is known to be one.
    pub(crate) fn new(pointer: &str) -> Self {
        Self {
            segments: pointer.split('/').skip(1).map(Segment::new).collect(),
        }
    }
}

// === impl Segment ===

impl Segment {
    fn new(written: &str) -> Self {
        let name = written.replace("~1", "/").replace("~0", "~");
        let plain = name == "0" || !name.starts_with(['0', '+']);
        let index = name.parse().ok().filter(|_| plain);
        Self { name, index }
    }
}

// === impl Reader ===

impl<'a, 'r> Reader<'a, 'r> {
    fn new(
        text: &'a str,
        wanted: &'r [Pointer],
        room: &'r mut dyn FnMut(usize) -> bool,
    ) -> Result<Self, Refused> {
        let members = members_at_most(text.as_bytes());
        if members > MEMBERS_MAX {
            return Err(Refused::TooManyMembers);
        }
        if !room(members * size_of::<OpenMember>()) {
            return Err(Refused::NoRoom);
        }
        Ok(Self {
            text,
            wanted,
            room,
            frames: Vec::new(),
            // All at once: growing would hold the old and the new one at a time.
            members: Vec::with_capacity(members),
            encodings: Encodings::new(text.len()),
            leading: Vec::new(),
            places: vec![None; wanted.len()],
            whole: None,
        })
    }

    fn run(mut self) -> Result<Read, Refused> {
        let mut tokens = Tokens::new(self.text);
        while let Some((at, token)) = tokens.next()? {
            match token {
                Token::Name(name) => self.name(name, at + 1),
                Token::Begin(kind) => self.begin(kind, at),
                Token::End => self.end(tokens.at())?,
                Token::Scalar(scalar) => self.scalar(scalar, at..tokens.at())?,
            }
        }
        Ok(Read {
            places: self.places,
            whole: self.whole.ok_or(Refused::NotJson)?,
        })
    }

    fn name(&mut self, name: Literal<'a>, at: usize) {
        if let Some(frame) = self.frames.last_mut() {
            frame.name = name;
            frame.name_at = at;
            frame.plain &= name.is_plain();
        }
    }

    fn begin(&mut self, kind: Container, at: usize) {
        let (first_leading, is_wanted) = self.follow(at);
        self.frames.push(Frame {
            kind,
            at,
            is_wanted,
            sum: Sum::new(b'a'),
            items: 0,
            name: Literal::new(""),
            name_at: 0,
            plain: true,
            first_member: self.members.len(),
            encodings: self.encodings.mark(),
            first_leading,
        });
    }

    fn end(&mut self, end: usize) -> Result<(), Refused> {
        let Some(frame) = self.frames.pop() else {
            return Ok(());
        };
        self.leading.truncate(frame.first_leading);
        if frame.is_wanted {
            self.ends(frame.at..end);
        }
        let encoding = match frame.kind {
            Container::Array => frame.sum.done(),
            Container::Object => self.object(&frame)?,
        };
        self.value(encoding)
    }

    fn scalar(&mut self, scalar: Scalar<'a>, range: Range<usize>) -> Result<(), Refused> {
        let (first_leading, is_wanted) = self.follow(range.start);
        self.leading.truncate(first_leading);
        if is_wanted {
            self.ends(range);
        }
        self.value(Encoding::of_scalar(scalar))
    }

    /// Gives a value to what it stands in.
    fn value(&mut self, encoding: Encoding) -> Result<(), Refused> {
        let Some(frame) = self.frames.last_mut() else {
            self.whole = Some(encoding);
            return Ok(());
        };
        match frame.kind {
            Container::Array => {
                frame.sum.add_framed(encoding.as_bytes());
                frame.items += 1;
            }
            Container::Object => {
                self.members.push(OpenMember {
                    name_at: place(frame.name_at)?,
                    name_bytes: place(frame.name.raw().len())?,
                    value: self.encodings.push(&encoding, self.room)?,
                });
            }
        }
        Ok(())
    }

    /// The encoding of an object that ends: its members sorted by name.
    fn object(&mut self, frame: &Frame<'_>) -> Result<Encoding, Refused> {
        let text = self.text;
        let own = self.members.get_mut(frame.first_member..);
        let own = own.unwrap_or_default();
        if frame.plain {
            own.sort_unstable_by(|one, other| one.raw(text).cmp(other.raw(text)));
        } else {
            own.sort_unstable_by(|one, other| one.name(text).order(other.name(text)));
        }
        let mut sum = Sum::new(b'o');
        let mut before: Option<Literal<'_>> = None;
        for member in own.iter() {
            let name = member.name(text);
            if before.is_some_and(|before| before.order(name).is_eq()) {
                return Err(Refused::DuplicateMember(shown(name.chars())));
            }
            before = Some(name);
            sum.add_framed(Encoding::of_string(name).as_bytes());
            sum.add_framed(self.encodings.get(member.value));
        }
        self.members.truncate(frame.first_member);
        self.encodings.drop_to(frame.encodings);
        Ok(sum.done())
    }

    // === Pointers ===

    /// Follows the wanted pointers to the value that begins here: those that name it note its place,
    /// those that lead into it are kept. Returns where the kept ones begin, and whether one names it.
    fn follow(&mut self, at: usize) -> (usize, bool) {
        let first = self.leading.len();
        let mut is_wanted = false;
        let Some(frame) = self.frames.last() else {
            self.leading.extend(0..self.wanted.len());
            return (first, is_wanted);
        };
        let depth = self.frames.len() - 1;
        for step in frame.first_leading..first {
            let number = self.leading.get(step).copied().unwrap_or_default();
            let segments = self.wanted.get(number).map(|pointer| &pointer.segments);
            let segments = segments.map_or(&[][..], Vec::as_slice);
            if !segments.get(depth).is_some_and(|one| frame.leads_by(one)) {
                continue;
            }
            if segments.len() > depth + 1 {
                self.leading.push(number);
            } else if let Some(place) = self.places.get_mut(number) {
                *place = Some(at..at);
                is_wanted = true;
            }
        }
        (first, is_wanted)
    }

    /// A value that a pointer names has ended.
    fn ends(&mut self, range: Range<usize>) {
        for place in self.places.iter_mut().flatten() {
            if place.start == range.start {
                place.end = range.end;
            }
        }
    }
}

/// How many members a text can have: colons outside strings, and no more than fit into it.
fn members_at_most(text: &[u8]) -> usize {
    let (mut colons, mut inside, mut escaped) = (0, false, false);
    for byte in text {
        if inside {
            inside = escaped || *byte != b'"';
            escaped = !escaped && *byte == b'\\';
        } else {
            inside = *byte == b'"';
            colons += usize::from(*byte == b':');
        }
    }
    colons.min(text.len() / MEMBER_BYTES_MIN)
}

fn place(at: usize) -> Result<u32, Refused> {
    u32::try_from(at).map_err(|_| Refused::TooLarge)
}

// === impl Frame ===

impl Frame<'_> {
    /// Whether a segment names the value that comes next.
    fn leads_by(&self, segment: &Segment) -> bool {
        match self.kind {
            Container::Array => segment.index == Some(self.items),
            Container::Object => self.name.means(&segment.name),
        }
    }
}

// === impl OpenMember ===

impl OpenMember {
    fn raw<'a>(&self, text: &'a str) -> &'a [u8] {
        let (at, bytes) = (self.name_at as usize, self.name_bytes as usize);
        text.as_bytes().get(at..at + bytes).unwrap_or_default()
    }

    fn name<'a>(&self, text: &'a str) -> Literal<'a> {
        let (at, bytes) = (self.name_at as usize, self.name_bytes as usize);
        Literal::new(text.get(at..at + bytes).unwrap_or_default())
    }
}
