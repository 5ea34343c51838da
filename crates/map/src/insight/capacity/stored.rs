//! The stored form of a bucket's spans.
//!
//! ```text
//!   version 1 | scale of the ramp's time, f64 | when the peaks turned, ms | spans, u32
//!   and of each span: length of its first bytes, u16 | these bytes | units, f32 | peaks, 8 x f32
//! ```
//!
//! Numbers are big-endian. A look that is under way is not stored.

use std::time::Duration;

use thiserror::Error;

use super::Capacity;
use super::limits::{SAMPLE_BYTES_MAX, SPANS_MAX};
use super::peaks::Peaks;
use super::rules::Rules;
use super::span::Span;

const VERSION: u8 = 1;

/// A stored row that is not the capacity of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("these bytes are not the capacity of a bucket, as version 1 writes it")]
pub struct MalformedCapacity;

impl Capacity {
    /// The stored form. `scale` says how much faster than real time that of the ramp runs.
    pub fn encode(&self, scale: f64) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.extend(scale.to_be_bytes());
        out.extend(u64::try_from(self.turned.as_millis()).unwrap_or(u64::MAX).to_be_bytes());
        out.extend((self.spans.len() as u32).to_be_bytes());
        for span in &self.spans {
            out.extend((span.low.len() as u16).to_be_bytes());
            out.extend(&span.low);
            out.extend((span.units as f32).to_be_bytes());
            span.peaks.0.as_flattened().iter().for_each(|peak| out.extend(peak.to_be_bytes()));
        }
        out
    }

    /// The bucket of a stored form, now. What it missed while nobody ran it is made up for: spans that have rested fall back.
    /// If the time of the ramp ran with another `scale`, nothing is known of the rest, and it begins now.
    ///
    /// Fails on bytes that [`Capacity::encode`] does not make.
    pub fn restore(
        stored: &[u8],
        scale: f64,
        rules: Rules,
        real: Duration,
        ramp: Duration,
        seed: u64,
    ) -> Result<Self, MalformedCapacity> {
        let mut rest = stored;
        let [version] = take(&mut rest)?;
        let stored_scale = f64::from_be_bytes(take(&mut rest)?);
        let turned = Duration::from_millis(u64::from_be_bytes(take(&mut rest)?));
        let count = u32::from_be_bytes(take(&mut rest)?) as usize;
        if version != VERSION || !(1..=SPANS_MAX).contains(&count) {
            return Err(MalformedCapacity);
        }
        let spans = (0..count).map(|_| span(&mut rest)).collect::<Result<Vec<_>, _>>()?;
        let is_in_order = spans.is_sorted_by(|a, b| a.low < b.low) && spans[0].low.is_empty();
        if !rest.is_empty() || !is_in_order {
            return Err(MalformedCapacity);
        }
        let turned = if stored_scale == scale { turned.min(ramp) } else { ramp };
        let mut capacity = Self { rules, spans, ticked: (real, ramp), turned, seed };
        capacity.fall_back(ramp);
        Ok(capacity)
    }
}

fn span(rest: &mut &[u8]) -> Result<Span, MalformedCapacity> {
    let length = usize::from(u16::from_be_bytes(take(rest)?));
    if length > SAMPLE_BYTES_MAX {
        return Err(MalformedCapacity);
    }
    let (low, behind) = rest.split_at_checked(length).ok_or(MalformedCapacity)?;
    *rest = behind;
    let mut number = || Ok(f32::from_be_bytes(take(rest)?)).and_then(finite);
    let units = number()?;
    let mut peaks = Peaks::default();
    for peak in peaks.0.as_flattened_mut() {
        *peak = number()?;
    }
    Ok(Span::new(low.to_vec(), f64::from(units), peaks))
}

fn finite(number: f32) -> Result<f32, MalformedCapacity> {
    if number.is_finite() { Ok(number) } else { Err(MalformedCapacity) }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], MalformedCapacity> {
    let (taken, behind) = rest.split_first_chunk::<N>().ok_or(MalformedCapacity)?;
    *rest = behind;
    Ok(*taken)
}
