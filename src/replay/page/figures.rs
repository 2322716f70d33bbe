//! Figures as people read them: grouped thousands, few digits, a unit.

/// A whole number with its thousands grouped: `52,502`.
pub(super) fn whole(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number in as many digits as it deserves: three, and no fraction from a hundred on.
pub(super) fn short(value: f64) -> String {
    if !value.is_finite() {
        return dash();
    }
    let size = value.abs();
    let sign = if value < 0.0 { "−" } else { "" };
    let text = if size >= 99.95 {
        return match size.round() as u64 {
            0 => "0".into(),
            n => format!("{sign}{}", whole(n)),
        };
    } else if size >= 9.995 {
        format!("{size:.1}")
    } else if size >= 0.1 || size == 0.0 {
        format!("{size:.2}")
    } else {
        format!("{size:.3}")
    };
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    if text == "0" {
        "0".into()
    } else {
        format!("{sign}{text}")
    }
}

/// A time of some seconds.
pub(super) fn seconds(value: Option<f64>) -> String {
    value.map_or_else(dash, |s| format!("{} s", short(s)))
}

/// A share of one, in per cent with one decimal.
pub(super) fn percent(share: Option<f64>) -> String {
    share
        .filter(|share| share.is_finite())
        .map_or_else(dash, |share| format!("{:.1} %", 100.0 * share))
}

/// A length of a window.
pub(super) fn window(window_ms: i64) -> String {
    if window_ms == 0 {
        "none".into()
    } else {
        format!("{} s", short(window_ms as f64 / 1000.0))
    }
}

/// What stands for a figure that does not exist.
pub(super) fn dash() -> String {
    "–".into()
}

/// A coordinate of a drawing: one decimal, and 0 for what is no number, so that no drawing breaks.
pub(super) fn at(coordinate: f64) -> String {
    if !coordinate.is_finite() {
        return "0".into();
    }
    let text = format!("{coordinate:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".into(),
        Some(whole) => whole.into(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_digits_they_deserve() {
        for (value, text) in [
            (0.0, "0"),
            (0.0042, "0.004"),
            (0.5, "0.5"),
            (-1.234, "−1.23"),
            (12.04, "12"),
            (99.96, "100"),
            (786.4, "786"),
            (52_502.0, "52,502"),
            (-1_000.2, "−1,000"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(short(value), text, "{value}");
        }
        assert_eq!(whole(1_234_567), "1,234,567");
        assert_eq!(percent(Some(0.6234)), "62.3 %");
        assert_eq!((window(0), window(2500)), ("none".into(), "2.5 s".into()));
    }

    #[test]
    fn a_coordinate_is_always_a_number() {
        for (value, text) in [
            (1.0, "1"),
            (1.25, "1.2"),
            (-0.01, "0"),
            (f64::INFINITY, "0"),
        ] {
            assert_eq!(at(value), text);
        }
    }
}
