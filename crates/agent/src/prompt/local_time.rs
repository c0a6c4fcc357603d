//! Today's date where the person is.

use std::fs;
use std::io::ErrorKind;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::civil::Date;
use jiff::tz::TimeZone;

/// Where the system says which time zone it is in.
const LOCALTIME: &str = "/etc/localtime";
/// How long the time zone counts: a person may travel while a session is open.
const ZONE_LIFE: Duration = Duration::from_secs(5 * 60);

static ZONE: Mutex<Option<(Instant, TimeZone)>> = Mutex::new(None);

/// Today's date in the system's time zone.
pub(super) fn local_date() -> Date {
    let mut zone = ZONE.lock().unwrap_or_else(PoisonError::into_inner);
    if zone.as_ref().is_none_or(|(since, _)| since.elapsed() > ZONE_LIFE) {
        *zone = Some((Instant::now(), system_zone()));
    }
    let zone = zone.as_ref().map_or(TimeZone::UTC, |(_, zone)| zone.clone());
    zone.to_datetime(jiff::Timestamp::now()).date()
}

/// The zone of `TZ`, else that of the system's own file. A zone that is named is looked up in the database of zones,
/// whose directories take longer to list than everything else that a run starts with.
fn system_zone() -> TimeZone {
    if std::env::var_os("TZ").is_some() {
        return TimeZone::system();
    }
    match fs::read(LOCALTIME) {
        Ok(bytes) => TimeZone::tzif("Local", &bytes).unwrap_or_else(|_| TimeZone::system()),
        Err(error) if error.kind() == ErrorKind::NotFound => TimeZone::UTC,
        Err(_) => TimeZone::system(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_is_that_of_the_systems_zone() {
        let dates = || (jiff::ZonedDateTime::now().date(), local_date(), jiff::ZonedDateTime::now().date());
        let (before, today, after) = dates();
        assert!(today == before || today == after);
    }
}
