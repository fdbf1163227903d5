//! The fabric as SVG. Racks are tiles in rows; above each row is a bar for what is between racks,
//! and each rack's parallel paths lead up to it. Lengths are pixels at a zoom of one.

use super::super::accused::Mark;
use super::parts::{Gauge, HostClass, HostPart, MAX_WIRES, PairPart, Parts, RackPart, Wire};
use crate::html::chart::escaped;
use ew_model::HostId;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Between tiles.
const GAP: f64 = 14.0;
/// Inside a tile.
const PAD: f64 = 8.0;
/// Height of the bar between racks.
const SPINE: f64 = 24.0;
/// Mean width of a letter over the size of the font, on the safe side.
const LETTER: f64 = 0.6;

/// What a drawing is laid out for.
pub(super) struct Shape {
    class: &'static str,
    width: f64,
}

impl Shape {
    /// A window on a desk.
    pub(super) const WIDE: Self = Self {
        class: "wide",
        width: 1004.0,
    };
    /// A telephone.
    pub(super) const NARROW: Self = Self {
        class: "narrow",
        width: 330.0,
    };
}

/// Sizes that depend on how many hosts there are.
struct Sizes {
    min_tile: f64,
    max_tile: f64,
    font: f64,
    uplink: f64,
    leaf: f64,
    chip: f64,
    gap: f64,
    dot: f64,
    wire_gap: f64,
}

const NAMED: Sizes = Sizes {
    min_tile: 150.0,
    max_tile: 495.0,
    font: 12.0,
    uplink: 62.0,
    leaf: 26.0,
    chip: 28.0,
    gap: 6.0,
    dot: 0.0,
    wire_gap: 6.0,
};
const DENSE: Sizes = Sizes {
    min_tile: 106.0,
    max_tile: 240.0,
    font: 10.0,
    uplink: 46.0,
    leaf: 18.0,
    chip: 15.0,
    gap: 3.0,
    dot: 12.0,
    wire_gap: 3.5,
};

struct Drawing<'a> {
    parts: &'a Parts,
    sizes: &'a Sizes,
    tile: f64,
    svg: String,
    /// Centres of hosts.
    centres: BTreeMap<HostId, (f64, f64)>,
}

/// A box of a host.
struct Placed<'a> {
    host: &'a HostPart,
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

pub(super) fn draw(parts: &Parts, shape: &Shape) -> String {
    let sizes = if parts.is_dense { &DENSE } else { &NAMED };
    let count = parts.racks.len().max(1);
    // The line that joins the rows' bars.
    let fits = ((shape.width + GAP) / (sizes.min_tile + GAP)).floor() as usize;
    let columns = fits.clamp(1, count);
    let left = if count > columns && parts.spine.is_some() {
        10.0
    } else {
        0.0
    };
    let free = shape.width - left - GAP * (columns as f64 - 1.0);
    let mut drawing = Drawing {
        parts,
        sizes,
        tile: (free / columns as f64).min(sizes.max_tile),
        svg: String::new(),
        centres: BTreeMap::new(),
    };
    let height = drawing.rows(columns, left, shape.width);
    for pair in &parts.pairs {
        drawing.pair(pair);
    }
    let dense = if parts.is_dense { " dense" } else { "" };
    // The outermost lines are as wide as others.
    let (width, height) = (shape.width + 2.0, height + 2.0);
    format!(
        "<svg class=\"fabric-drawing {}{dense}\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
         role=\"group\" aria-label=\"{}\"><g transform=\"translate(1 1)\">{}</g></svg>",
        shape.class,
        escaped(&parts.summary),
        drawing.svg
    )
}

impl Drawing<'_> {
    /// The height that all rows take.
    fn rows(&mut self, columns: usize, left: f64, width: f64) -> f64 {
        let parts = self.parts;
        let has_spine = parts.spine.is_some();
        let top = if has_spine {
            SPINE + self.sizes.uplink
        } else {
            0.0
        };
        let mut y = 0.0;
        for (at, row) in parts.racks.chunks(columns).enumerate() {
            let heights = row.iter().map(|rack| self.tile_height(rack));
            let height = top + heights.fold(0.0, f64::max);
            if has_spine {
                let words = parts.spine.as_deref().filter(|_| at == 0).unwrap_or("");
                self.spine(words, left, y, width - left);
                let is_last = (at + 1) * columns >= parts.racks.len();
                if !is_last {
                    let (x, from, to) =
                        (left / 2.0, y + SPINE / 2.0, y + height + GAP + SPINE / 2.0);
                    let path = format!("M{left:.0} {from:.0}H{x:.0}V{to:.0}H{left:.0}");
                    let _ = write!(self.svg, "<path class=\"trunk\" d=\"{path}\"/>");
                }
            }
            for (column, rack) in row.iter().enumerate() {
                let x = left + column as f64 * (self.tile + GAP);
                self.rack(rack, x, y, y + top);
            }
            y += height + GAP;
        }
        y - GAP
    }

    fn spine(&mut self, words: &str, x: f64, y: f64, width: f64) {
        let _ = write!(
            self.svg,
            "<g class=\"spine\"><rect x=\"{x:.0}\" y=\"{y:.0}\" width=\"{width:.0}\" height=\"{SPINE}\" rx=\"5\"/>\
             <text x=\"{:.0}\" y=\"{:.0}\">{}</text></g>",
            x + 10.0,
            y + SPINE / 2.0 + 4.0,
            escaped(words)
        );
    }

    fn tile_height(&self, rack: &RackPart) -> f64 {
        let placed = self.placed(rack, 0.0, 0.0);
        let bottom = placed.iter().map(|p| p.y + p.height).fold(0.0, f64::max);
        self.sizes.leaf + bottom + PAD
    }

    fn rack(&mut self, rack: &RackPart, x: f64, y: f64, top: f64) {
        let key = rack
            .id
            .map_or_else(|| "lone".to_owned(), |id| id.0.to_string());
        let _ = write!(self.svg, "<g class=\"rack\" data-rack=\"{key}\">");
        let height = self.tile_height(rack);
        let (width, leaf) = (self.tile, self.sizes.leaf);
        let _ = write!(
            self.svg,
            "<rect class=\"tile\" x=\"{x:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"6\"/>"
        );
        let tone = rack.marks.first().map_or("", Mark::class);
        let _ = write!(
            self.svg,
            "<a class=\"rack-link {tone}\" href=\"#{}\" data-at=\"rack-{key}\" aria-label=\"{}\">\
             <rect class=\"hit\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\" rx=\"6\"/>",
            rack.to,
            escaped(&rack.about),
            if rack.wires.is_empty() {
                top
            } else {
                y + SPINE
            },
            if rack.wires.is_empty() {
                leaf
            } else {
                top - y - SPINE + leaf
            },
        );
        let beside = self.wires(rack, x + PAD, y + SPINE, top);
        for (line, gauge) in rack.gauges.iter().enumerate() {
            self.gauge(gauge, beside, x + width - PAD, y + SPINE, line);
        }
        self.leaf(rack, x, top);
        self.svg.push_str("</a>");
        self.hosts(rack, x, top);
        self.svg.push_str("</g>");
    }

    fn leaf(&mut self, rack: &RackPart, x: f64, top: f64) {
        let (leaf, font, width) = (self.sizes.leaf, self.sizes.font, self.tile);
        let line = top + leaf / 2.0 + font * 0.36;
        let words: Vec<&str> = rack.marks.iter().map(Mark::word).collect();
        let words = words.join(", ");
        let inside = width - 2.0 * PAD;
        let sign = if words.is_empty() { 0.0 } else { font + 3.0 };
        let of_words = self.width_of(&words) + 3.0;
        // Where only one of both fits it is the name; the words are in the finding.
        let has_words = self.width_of(&rack.name) + sign + of_words + 4.0 <= inside;
        let name_width = inside - sign - if has_words { of_words } else { 4.0 };
        let _ = write!(
            self.svg,
            "<rect class=\"leaf\" x=\"{x:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{leaf}\" rx=\"6\"/>\
             <text class=\"rack-name\" x=\"{:.1}\" y=\"{line:.1}\" font-size=\"{font}\">{}</text>",
            x + PAD,
            escaped(&self.fitted(&rack.name, name_width)),
        );
        if words.is_empty() {
            return;
        }
        let end = x + width - PAD;
        let start = if has_words { end - of_words + 3.0 } else { end };
        self.triangle(start - font - 3.0, top + (leaf - font) / 2.0, font);
        if has_words {
            let _ = write!(
                self.svg,
                "<text class=\"mark-word\" x=\"{start:.1}\" y=\"{line:.1}\" font-size=\"{font}\">{}</text>",
                escaped(&words)
            );
        }
    }

    /// Where the space next to them begins.
    fn wires(&mut self, rack: &RackPart, x: f64, y: f64, top: f64) -> f64 {
        let gap = self.sizes.wire_gap;
        if rack.wires.len() > MAX_WIRES {
            let _ = write!(
                self.svg,
                "<path class=\"wire many\" d=\"M{:.1} {y:.1}V{top:.1}\"/>",
                x + 5.0
            );
            return x + 16.0;
        }
        for (at, wire) in rack.wires.iter().enumerate() {
            let class = match wire {
                Wire::Used => "wire",
                Wire::Bad => "wire bad",
                Wire::Unused => "wire unused",
            };
            let at = x + 2.0 + at as f64 * gap;
            let _ = write!(
                self.svg,
                "<path class=\"{class}\" d=\"M{at:.1} {y:.1}V{top:.1}\"/>"
            );
            if *wire != Wire::Used {
                // A cross, for those who do not see its colour.
                let (mid, arm) = ((y + top) / 2.0, gap.min(4.0));
                let _ = write!(
                    self.svg,
                    "<path class=\"cross\" d=\"M{:.1} {:.1}l{:.1} {:.1}m0 {:.1}l{:.1} {:.1}\"/>",
                    at - arm,
                    mid - arm,
                    2.0 * arm,
                    2.0 * arm,
                    -2.0 * arm,
                    -2.0 * arm,
                    2.0 * arm
                );
            }
        }
        x + rack.wires.len() as f64 * gap + 6.0
    }

    /// Words, and below them a bar as long as what the hosts can do: filled is the load, hatched
    /// the missing capacity.
    fn gauge(&mut self, gauge: &Gauge, x: f64, end: f64, y: f64, line: usize) {
        let (font, height) = (self.sizes.font, self.sizes.uplink);
        let step = height / 2.0 - 2.0;
        let base = y + line as f64 * step + font + 3.0;
        let width = (end - x).max(10.0);
        let whole = format!("{} {}", gauge.arrow, gauge.text);
        let words = match self.width_of(&whole) <= width {
            true => whole,
            false => whole.split(',').next().unwrap_or_default().to_owned(),
        };
        let bar = base + font * 0.35;
        let thick = if font < 11.0 { 3.0 } else { 5.0 };
        let _ = write!(
            self.svg,
            "<text class=\"load {0}\" x=\"{x:.1}\" y=\"{base:.1}\" font-size=\"{font}\">{1}</text>\
             <rect class=\"bar\" x=\"{x:.1}\" y=\"{bar:.1}\" width=\"{width:.1}\" height=\"{thick}\"/>\
             <rect class=\"carried {0}\" x=\"{x:.1}\" y=\"{bar:.1}\" width=\"{2:.1}\" height=\"{thick}\"/>",
            gauge.class,
            escaped(&words),
            width * gauge.carried,
        );
        if let Some(capacity) = gauge.capacity {
            let at = x + width * capacity;
            let _ = write!(
                self.svg,
                "<rect class=\"lacking\" x=\"{at:.1}\" y=\"{bar:.1}\" width=\"{:.1}\" height=\"{thick}\"/>\
                 <path class=\"stop\" d=\"M{at:.1} {:.1}v{:.1}\"/>",
                width * (1.0 - capacity),
                bar - 2.0,
                thick + 4.0
            );
        }
    }

    /// Boxes row by row below (0, 0) of the tile's inside: what is accused first, with its name.
    fn placed<'a>(&self, rack: &'a RackPart, left: f64, top: f64) -> Vec<Placed<'a>> {
        let sizes = self.sizes;
        let inside = self.tile - 2.0 * PAD;
        let is_dense = self.parts.is_dense;
        let mut hosts: Vec<&HostPart> = rack.hosts.iter().collect();
        if is_dense {
            hosts.sort_by_key(|host| host.state == HostClass::Fine);
        }
        let even = (inside - sizes.gap * (hosts.len() as f64 - 1.0)) / hosts.len().max(1) as f64;
        let (mut x, mut y, mut line) = (0.0, if is_dense { 5.0 } else { 16.0 }, 0.0_f64);
        let mut placed = Vec::new();
        for host in hosts {
            let is_dot = is_dense && host.state == HostClass::Fine;
            let named = self.width_of(&host.name) + 14.0;
            let named = named
                + if host.state == HostClass::Fine {
                    0.0
                } else {
                    sizes.font
                };
            let (width, height) = match is_dot {
                true => (sizes.dot, sizes.dot),
                false if is_dense => (named.min(inside), sizes.chip),
                false => (named.max(even.min(150.0)).min(inside), sizes.chip),
            };
            if x > 0.0 && x + width > inside + 0.01 {
                (x, y, line) = (0.0, y + line + sizes.gap, 0.0);
            }
            placed.push(Placed {
                host,
                x: left + PAD + x,
                y: top + y,
                width,
                height,
            });
            x += width + sizes.gap;
            line = line.max(height);
        }
        placed
    }

    fn hosts(&mut self, rack: &RackPart, x: f64, top: f64) {
        let below = top + self.sizes.leaf;
        let placed = self.placed(rack, x, below);
        let first = placed.first().map(|one| one.y);
        for one in &placed {
            let middle = one.x + one.width / 2.0;
            if !self.parts.is_dense && Some(one.y) == first && rack.id.is_some() {
                let _ = write!(
                    self.svg,
                    "<path class=\"link\" d=\"M{middle:.1} {below:.1}V{:.1}\"/>",
                    one.y
                );
            }
            self.centres
                .insert(one.host.id, (middle, one.y + one.height / 2.0));
            self.host(one);
        }
    }

    fn host(&mut self, placed: &Placed<'_>) {
        let Placed {
            host,
            x,
            y,
            width,
            height,
        } = placed;
        let (font, class) = (self.sizes.font, class_of(host.state));
        let is_dot = self.parts.is_dense && host.state == HostClass::Fine;
        let _ = write!(
            self.svg,
            "<a class=\"host {class}\" href=\"#{}\" data-at=\"host-{}\" aria-label=\"{}\">\
             <rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"{}\"/>",
            host.to,
            host.id.0,
            escaped(&host.about),
            if is_dot { 2 } else { 4 }
        );
        let mut middle = x + width / 2.0;
        if !is_dot && host.state != HostClass::Fine {
            let size = font * 0.9;
            self.triangle(x + 5.0, y + (height - size) / 2.0, size);
            middle += font * 0.6;
        }
        // Read when the drawing is zoomed in.
        let font = if is_dot { 3.2 } else { font };
        let name_width = if is_dot { width - 1.0 } else { width - 8.0 };
        let name = fitted(&host.name, name_width, font);
        let line = y + height / 2.0 + font * 0.36;
        let _ = write!(
            self.svg,
            "<text x=\"{middle:.1}\" y=\"{line:.1}\" font-size=\"{font}\">{}</text></a>",
            escaped(&name)
        );
    }

    /// The sign of something wrong.
    fn triangle(&mut self, x: f64, y: f64, size: f64) {
        let half = size / 2.0;
        let _ = write!(
            self.svg,
            "<path class=\"sign\" d=\"M{:.1} {y:.1}l{half:.1} {size:.1}h{:.1}z\"/>",
            x + half,
            -size
        );
    }

    /// A line from host to host.
    fn pair(&mut self, pair: &PairPart) {
        let (Some(from), Some(to)) = (self.centres.get(&pair.src), self.centres.get(&pair.dst))
        else {
            return;
        };
        let bow = (from.1.min(to.1) - 22.0).max(2.0);
        let _ = write!(
            self.svg,
            "<a class=\"pair {}\" href=\"#{}\" data-at=\"pair-{}-{}\" aria-label=\"{}\">\
             <path d=\"M{:.1} {:.1}Q{:.1} {bow:.1} {:.1} {:.1}\"/></a>",
            pair.class,
            pair.to,
            pair.src.0,
            pair.dst.0,
            escaped(&pair.about),
            from.0,
            from.1,
            (from.0 + to.0) / 2.0,
            to.0,
            to.1
        );
    }

    fn width_of(&self, text: &str) -> f64 {
        text.chars().count() as f64 * self.sizes.font * LETTER
    }

    fn fitted(&self, text: &str, width: f64) -> String {
        fitted(text, width, self.sizes.font)
    }
}

fn class_of(state: HostClass) -> &'static str {
    match state {
        HostClass::Fine => "fine",
        HostClass::Fault => "bad",
        HostClass::Notice => "part",
        HostClass::Gone => "gone",
    }
}

/// The end is kept: names share their beginnings.
fn fitted(text: &str, width: f64, font: f64) -> String {
    let max = (width / (font * LETTER)).floor().max(1.0) as usize;
    let count = text.chars().count();
    if count <= max {
        return text.to_owned();
    }
    let kept: String = text
        .chars()
        .skip(count - max.saturating_sub(1).max(1))
        .collect();
    format!("\u{2026}{kept}")
}
