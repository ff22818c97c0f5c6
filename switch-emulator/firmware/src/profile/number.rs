//! A number of a profile with its source and range.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Where a number comes from.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum NumberSource {
    Paper,
    Fit,
    Count,
    Datasheet,
    Assumption,
    Measured,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sourced<T> {
    value: T,
    #[expect(dead_code, reason = "read to refuse an unknown source")]
    source: NumberSource,
    #[expect(
        dead_code,
        reason = "read to refuse a range that is no pair of such numbers"
    )]
    range: Option<[T; 2]>,
    #[serde(default)]
    #[expect(dead_code, reason = "read to refuse a note that is no text")]
    note: String,
    #[serde(default)]
    #[expect(dead_code, reason = "read to refuse an error that is no number")]
    standard_error: f64,
    #[serde(default)]
    #[expect(dead_code, reason = "read to refuse samples that are no number")]
    samples: u64,
    #[serde(default)]
    #[expect(dead_code, reason = "read to refuse a procedure that is no text")]
    procedure: String,
}

/// Type of a number in a profile.
pub trait Number: Sized + PartialOrd + fmt::Display {
    /// Returns the number, if it is in the type's range.
    fn from_i64(value: i64) -> Option<Self>;
    /// Returns the number, if the type holds it.
    fn from_f64(value: f64) -> Option<Self>;
}

impl Number for i64 {
    fn from_i64(value: i64) -> Option<Self> {
        // Products with the length of a frame, and sums over a whole table, must stay far from overflow.
        (value.unsigned_abs() <= 1_000_000_000_000).then_some(value)
    }
    fn from_f64(_: f64) -> Option<Self> {
        None
    }
}

impl Number for u64 {
    fn from_i64(value: i64) -> Option<Self> {
        i64::from_i64(value).and_then(|value| Self::try_from(value).ok())
    }
    fn from_f64(_: f64) -> Option<Self> {
        None
    }
}

impl Number for f64 {
    #[allow(clippy::cast_precision_loss)] // numbers in a profile are small
    fn from_i64(value: i64) -> Option<Self> {
        Some(value as Self)
    }
    fn from_f64(value: f64) -> Option<Self> {
        value.is_finite().then_some(value)
    }
}

/// Reads a number of a profile, plain or as `{ value, source, range, note }`, with `standard_error`, `samples` and
/// `procedure` too if it was measured; for `deserialize_with`.
///
/// # Errors
/// The reader's, if it is no number of that type, or its source is unknown. The range says how sure a number is: somebody who
/// tries another device may leave it, and the programs that read profiles warn of it.
pub fn number<'de, D: Deserializer<'de>, T: Number + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    struct NumberVisitor<T>(PhantomData<T>);

    impl<'de, T: Number + Deserialize<'de>> Visitor<'de> for NumberVisitor<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number or a table { value, source, range, note }")
        }

        fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<T, E> {
            T::from_i64(value).ok_or_else(|| E::custom(format!("{value} is out of range")))
        }

        fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<T, E> {
            T::from_f64(value).ok_or_else(|| E::custom(format!("{value} is not a whole number")))
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            let found =
                Sourced::<T>::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
            Ok(found.value)
        }
    }

    deserializer.deserialize_any(NumberVisitor(PhantomData))
}
