//! What a page says of the call that made it.

use std::ffi::OsString;

use jiff::tz::TimeZone;

use crate::domain::UnixMs;

use super::timeline::wall;

/// The call that made a page.
#[derive(Debug, Clone)]
pub struct Account {
    /// The command, as it could be typed again.
    pub command: String,
    /// The zone of the wall clock.
    pub tz: TimeZone,
    /// Where the cars come from, in words.
    pub fleet: String,
}

impl Account {
    /// Of the arguments of this process, its own name left out; an unknown zone is UTC.
    pub fn new(arguments: impl IntoIterator<Item = OsString>, tz: &str, fleet: String) -> Self {
        let mut command = String::from("kheya");
        for argument in arguments {
            command.push(' ');
            command.push_str(&quoted(&argument.to_string_lossy()));
        }
        Self {
            command,
            tz: TimeZone::get(tz).unwrap_or(TimeZone::UTC),
            fleet,
        }
    }

    /// A span of time on the wall clock, with its zone.
    pub(super) fn span(&self, from: UnixMs, to: UnixMs) -> String {
        let (Some(from), Some(to)) = (wall(from, &self.tz), wall(to, &self.tz)) else {
            return String::new();
        };
        let end = if from.date() == to.date() {
            "%H:%M"
        } else {
            "%Y-%m-%d %H:%M"
        };
        let zone = self.tz.iana_name().unwrap_or("UTC");
        format!(
            "{} to {}, {zone}",
            from.strftime("%Y-%m-%d %H:%M"),
            to.strftime(end)
        )
    }
}

/// An argument as a shell takes it.
fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,@%+".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        argument.into()
    } else {
        format!("'{}'", argument.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_typed_again() {
        let arguments = ["replay", "my trips.csv", "--tz", "a'b", ""].map(OsString::from);
        let account = Account::new(arguments, "Asia/Dhaka", String::new());
        assert_eq!(
            account.command,
            r"kheya replay 'my trips.csv' --tz 'a'\''b' ''"
        );
        let from = UnixMs::new(1_767_720_600_000);
        assert_eq!(
            account.span(from, from),
            "2026-01-06 23:30 to 23:30, Asia/Dhaka"
        );
    }
}
