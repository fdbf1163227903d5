//! Sizes of messages as measured in data centres and published, for flow completion times.
//!
//! A distribution is kept as points of its cumulative curve, linear between them. Messages have one
//! size per class (four times as wide as the class before): the mean of the distribution within the
//! class. So the mean of all messages is the distribution's, and a completion time can be compared
//! with that of the very same size alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Upper ends of the classes: up to 64 bytes a message is one frame of the shortest length.
const CLASS_ENDS: [u64; 11] = [
    1 << 6,
    1 << 8,
    1 << 10,
    1 << 12,
    1 << 14,
    1 << 16,
    1 << 18,
    1 << 20,
    1 << 22,
    1 << 24,
    1 << 26,
];

/// Classes of any distribution, at most.
pub const MAX_SIZES: usize = CLASS_ENDS.len();

/// A published distribution of message sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SizeDistribution {
    /// A web search cluster's flows: M. Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010,
    /// figure 4. W5 of Homa.
    #[serde(alias = "w5")]
    WebSearch,
    /// A Hadoop cluster's flows: A. Roy et al., "Inside the Social Network's (Datacenter)
    /// Network", SIGCOMM 2015, figure 6. W4 of Homa.
    #[default]
    #[serde(alias = "w4")]
    Hadoop,
    /// Values of memcached (ETC): B. Atikoglu et al., "Workload Analysis of a Large-Scale
    /// Key-Value Store", SIGMETRICS 2012, table 5. W1 of B. Montazeri et al., "Homa", SIGCOMM
    /// 2018.
    W1,
    /// Messages of a search application at Google: W2 of Homa, figure 1.
    W2,
    /// All RPCs of a data centre at Google: W3 of Homa, figure 1.
    W3,
}

/// Messages of one size, which stand for a class of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SizeClass {
    /// Of each message.
    pub bytes: u64,
    /// Of all messages, 0 to 1.
    pub share: f64,
}

/// Bytes, and the share of messages that are no longer.
type Points = &'static [(f64, f64)];

const WEB_SEARCH: Points = &[
    (1.0, 0.0),
    (1e4, 0.15),
    (2e4, 0.2),
    (3e4, 0.3),
    (5e4, 0.4),
    (8e4, 0.53),
    (2e5, 0.6),
    (1e6, 0.7),
    (2e6, 0.8),
    (5e6, 0.9),
    (1e7, 0.97),
    (3e7, 1.0),
];

const HADOOP: Points = &[
    (1.0, 0.0),
    (92.0, 0.0074),
    (217.0, 0.0149),
    (300.0, 0.052),
    (376.0, 0.2026),
    (480.0, 0.2639),
    (600.0, 0.4591),
    (737.0, 0.552),
    (1042.0, 0.6097),
    (1664.0, 0.6673),
    (7830.0, 0.7082),
    (31946.0, 0.7212),
    (44260.0, 0.7584),
    (51046.0, 0.816),
    (81565.0, 0.8717),
    (115_331.0, 0.8978),
    (184_284.0, 0.9257),
    (288_520.0, 0.9535),
    (470_507.0, 0.9628),
    (940_700.0, 0.9721),
    (2_169_118.0, 0.987),
    (1e7, 1.0),
];

/// Up to 15 bytes the published table, beyond it the published generalised Pareto distribution
/// (scale 214.476, shape 0.348238).
const W1: Points = &[
    (1.0, 0.0058),
    (2.0, 0.184),
    (3.0, 0.2764),
    (5.0, 0.304),
    (11.0, 0.4176),
    (15.0, 0.47),
    (32.0, 0.509),
    (64.0, 0.5724),
    (128.0, 0.6698),
    (256.0, 0.7907),
    (512.0, 0.9001),
    (1024.0, 0.9659),
    (2048.0, 0.9915),
    (4096.0, 0.99835),
    (8192.0, 0.99973),
    (16_384.0, 0.99996),
    (65_536.0, 1.0),
];

const W2: Points = &[
    (1.0, 0.0),
    (3.0, 0.1323),
    (8.0, 0.1701),
    (32.0, 0.189),
    (64.0, 0.3264),
    (128.0, 0.3417),
    (256.0, 0.4638),
    (301.0, 0.5979),
    (341.0, 0.6871),
    (394.0, 0.7764),
    (465.0, 0.8657),
    (512.0, 0.9104),
    (1024.0, 0.9581),
    (2048.0, 0.98101),
    (4096.0, 0.99532),
    (8192.0, 0.99842),
    (16_384.0, 0.9989),
    (65_536.0, 0.99935),
    (131_072.0, 0.99987),
    (262_144.0, 0.999975),
    (1_071_908.0, 0.999993),
    (3_529_904.0, 1.0),
];

const W3: Points = &[
    (1.0, 0.0),
    (2.0, 0.2767),
    (3.0, 0.4612),
    (4.0, 0.5534),
    (7.0, 0.6456),
    (32.0, 0.7379),
    (64.0, 0.7974),
    (128.0, 0.8271),
    (256.0, 0.8569),
    (512.0, 0.9387),
    (1024.0, 0.961),
    (2048.0, 0.974),
    (4096.0, 0.98145),
    (8192.0, 0.98982),
    (16_384.0, 0.99563),
    (32_768.0, 0.99726),
    (65_536.0, 0.99807),
    (131_072.0, 0.99917),
    (262_144.0, 0.99955),
    (524_288.0, 0.99985),
    (1_005_228.0, 0.999924),
    (3_221_790.0, 0.999981),
    (12_158_197.0, 1.0),
];

impl SizeDistribution {
    /// The words of scenario files, and what each means; the first of a distribution is its
    /// name.
    pub const WORDS: [(&'static str, Self); 7] = [
        ("web-search", Self::WebSearch),
        ("hadoop", Self::Hadoop),
        ("w1", Self::W1),
        ("w2", Self::W2),
        ("w3", Self::W3),
        ("w4", Self::Hadoop),
        ("w5", Self::WebSearch),
    ];

    /// The word used in scenario files and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::WebSearch => "web-search",
            Self::Hadoop => "hadoop",
            Self::W1 => "w1",
            Self::W2 => "w2",
            Self::W3 => "w3",
        }
    }

    /// The sizes that messages have, ascending, without those that none has.
    #[must_use]
    pub fn classes(self) -> Vec<SizeClass> {
        let starts = std::iter::once(0).chain(CLASS_ENDS);
        let classes = starts.zip(CLASS_ENDS).filter_map(|(start, end)| {
            let (share, bytes) = self.within(start as f64, end as f64);
            let mean_bytes = (bytes / share).round().max(1.0) as u64;
            (share > 0.0).then_some(SizeClass {
                bytes: mean_bytes,
                share,
            })
        });
        classes.collect()
    }

    /// Of a message.
    #[must_use]
    pub fn mean_bytes(self) -> f64 {
        let classes = self.classes().into_iter();
        classes.map(|class| class.share * class.bytes as f64).sum()
    }

    /// Of all messages: the share whose size is above `start` and up to `end`, and the sum of their
    /// sizes over the number of all.
    fn within(self, start: f64, end: f64) -> (f64, f64) {
        let points = self.points();
        let (first_bytes, first_share) = points[0];
        let is_first_here = start < first_bytes && first_bytes <= end;
        let first = if is_first_here { first_share } else { 0.0 };
        let mut sum = (first, first * first_bytes);
        for two in points.windows(2) {
            let [(from, below), (to, up_to)] = [two[0], two[1]];
            let (low, high) = (from.max(start), to.min(end));
            if low < high {
                let share = (up_to - below) * (high - low) / (to - from);
                sum.0 += share;
                sum.1 += share * (low + high) / 2.0;
            }
        }
        sum
    }

    fn points(self) -> Points {
        match self {
            Self::WebSearch => WEB_SEARCH,
            Self::Hadoop => HADOOP,
            Self::W1 => W1,
            Self::W2 => W2,
            Self::W3 => W3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [SizeDistribution; 5] = [
        SizeDistribution::WebSearch,
        SizeDistribution::Hadoop,
        SizeDistribution::W1,
        SizeDistribution::W2,
        SizeDistribution::W3,
    ];

    /// The curve's own mean: the integral of the share of longer messages.
    fn mean_of_curve(distribution: SizeDistribution) -> f64 {
        let points = distribution.points();
        let parts = points.windows(2).map(|two| {
            let [(from, below), (to, up_to)] = [two[0], two[1]];
            (to - from) * (1.0 - (below + up_to) / 2.0)
        });
        points[0].0 + parts.sum::<f64>()
    }

    #[test]
    fn the_classes_have_all_messages_and_the_curves_mean() {
        for distribution in ALL {
            let classes = distribution.classes();
            let shares: f64 = classes.iter().map(|class| class.share).sum();
            assert!((shares - 1.0).abs() < 1e-9, "{distribution:?} {shares}");
            let (ours, curve) = (distribution.mean_bytes(), mean_of_curve(distribution));
            // Sizes are whole bytes.
            assert!(
                (ours - curve).abs() < 0.5,
                "{distribution:?} {ours} {curve}"
            );
            assert!(classes.len() <= MAX_SIZES);
            assert!(classes.is_sorted_by_key(|class| class.bytes));
        }
    }

    /// What others say these are in the mean: 1.7 MB of web search's flows (with which DCTCP and
    /// pFabric are simulated), and the averages that come with Homa's W2 and W3.
    #[test]
    fn means_are_as_published() {
        let mean = |distribution: SizeDistribution| distribution.mean_bytes();
        assert!((mean(SizeDistribution::WebSearch) / 1.7e6 - 1.0).abs() < 0.05);
        assert!((mean(SizeDistribution::W2) / 440.8 - 1.0).abs() < 0.1);
        assert!((mean(SizeDistribution::W3) / 1001.3 - 1.0).abs() < 0.1);
    }

    #[test]
    fn curves_rise_from_nothing_to_all() {
        for points in ALL.map(SizeDistribution::points) {
            assert!(points.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1));
            assert_eq!(points.last().unwrap().1, 1.0);
        }
    }

    #[test]
    fn every_word_is_read_back() {
        for (word, distribution) in SizeDistribution::WORDS {
            let read: SizeDistribution = serde_json::from_str(&format!("\"{word}\"")).unwrap();
            assert_eq!(read, distribution);
        }
        for distribution in ALL {
            let first = SizeDistribution::WORDS
                .into_iter()
                .find(|(_, of)| *of == distribution);
            assert_eq!(first.unwrap().0, distribution.name());
        }
    }
}
