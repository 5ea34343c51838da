//! The settings of the rates of objects, which only the profile `cloud` has.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use rangehold_server::profile::Profile;

use super::flags::{DevFlags, ProfileName};
use super::values::parse_size;

/// How --rate-scale may be: below it, a bucket would take less than one write in ten seconds.
const RATE_SCALES: [f64; 2] = [0.0001, 10.0];
/// How --time-scale may be: 20 minutes become 12 seconds at the most, in which requests can still be counted.
const TIME_SCALES: [f64; 2] = [1.0, 100.0];

impl DevFlags {
    /// The profile, with the rates of objects as they are set.
    pub(super) fn profile(&self) -> Result<Profile> {
        let mut profile = self.profile.unwrap_or(ProfileName::Fast).profile();
        let set = [
            ("--rate-scale", self.rate_scale.is_some()),
            ("--time-scale", self.time_scale.is_some()),
            ("--object-bandwidth", self.object_bandwidth.is_some()),
            ("--object-idle-hours", self.object_idle_hours.is_some()),
        ];
        let Some(objects) = &mut profile.objects else {
            return match set.into_iter().find(|(_, is_set)| *is_set) {
                Some((flag, _)) => bail!("{flag}: the profile fast has no rates; give --profile cloud too"),
                None => Ok(profile),
            };
        };
        let within = |flag: &str, factor: Option<f64>, [least, most]: [f64; 2]| {
            let factor = factor.unwrap_or(1.0);
            match (least..=most).contains(&factor) {
                true => Ok(factor),
                false => Err(anyhow!("{flag} {factor}: choose from {least} to {most}")),
            }
        };
        let rate_scale = within("--rate-scale", self.rate_scale, RATE_SCALES)?;
        objects.time_scale = within("--time-scale", self.time_scale, TIME_SCALES)?;
        objects.rates = objects.rates.clone().scaled(rate_scale);
        if let Some(hours) = self.object_idle_hours {
            if hours == 0 {
                bail!("--object-idle-hours 0: choose at least 1");
            }
            objects.rates.idle_after = Duration::from_secs(u64::from(hours) * 60 * 60);
        }
        let bandwidth = self.object_bandwidth.as_deref().map(parse_size).transpose();
        let bandwidth = bandwidth.context("--object-bandwidth")?;
        objects.bytes_per_second = bandwidth.map(|bytes| bytes as f64 * rate_scale);
        Ok(profile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_scaled_in_the_profile_cloud_and_refused_in_the_other() {
        let cloud = DevFlags { profile: Some(ProfileName::Cloud), ..DevFlags::default() };
        let scaled = DevFlags {
            rate_scale: Some(0.01),
            time_scale: Some(20.0),
            object_bandwidth: Some("1GiB".into()),
            object_idle_hours: Some(1),
            ..cloud.clone()
        };
        let objects = scaled.profile().unwrap().objects.unwrap();
        assert_eq!((objects.rates.writes, objects.rates.reads, objects.time_scale), (10.0, 50.0, 20.0));
        assert_eq!(objects.bytes_per_second, Some(f64::from(1 << 30) * 0.01));
        assert_eq!(objects.rates.idle_after, Duration::from_secs(3_600));
        assert!(DevFlags { rate_scale: Some(0.0), ..cloud.clone() }.profile().is_err());
        assert!(DevFlags { time_scale: Some(f64::NAN), ..cloud.clone() }.profile().is_err());
        let fast = DevFlags { profile: None, ..scaled };
        assert!(fast.profile().unwrap_err().to_string().contains("--profile cloud"));
    }
}
