//! Findings as a self-contained SVG. It has colours for light and dark mode, no external resources and no
//! scripts, and every text in it is escaped.

use std::fmt::Write as _;

use windlass_learn::ab::Interval;

use crate::terminal::visible;

/// A row of the drawing of intervals.
pub(super) struct Effect {
    pub(super) name: String,
    /// By how much B differs, in percent or points.
    pub(super) effect: Option<f64>,
    pub(super) interval: Option<Interval>,
    pub(super) verdict: String,
    pub(super) kind: Kind,
}

/// The verdict of a row, which determines its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    A,
    B,
    Neither,
}

/// A row of the drawing of units: what was measured of a task, or of a variant, in either arm.
pub(super) struct Unit {
    pub(super) name: String,
    pub(super) a: f64,
    pub(super) b: f64,
}

/// The content of an SVG.
pub(super) struct Drawing {
    pub(super) title: String,
    pub(super) subtitle: String,
    pub(super) effects: Vec<Effect>,
    /// The metric of the units.
    pub(super) unit_title: String,
    pub(super) units: Vec<Unit>,
}

/// The maximum number of units drawn.
const MAX_UNITS: usize = 60;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 730.0;

const STYLE: &str = "\
svg{font:13px system-ui,sans-serif;background:#fff}\
.t{fill:#1b1f24}.m{fill:#59636e}.l{stroke:#d1d9e0}.z{stroke:#59636e;stroke-dasharray:3 3}\
.a{fill:#0969da;stroke:#0969da}.b{fill:#bc4c00;stroke:#bc4c00}.n{fill:#59636e;stroke:#59636e}\
@media(prefers-color-scheme:dark){svg{background:#0d1117}.t{fill:#f0f6fc}.m{fill:#9198a1}\
.l{stroke:#3d444d}.z{stroke:#9198a1}.a{fill:#4493f8;stroke:#4493f8}.b{fill:#f0883e;stroke:#f0883e}\
.n{fill:#9198a1;stroke:#9198a1}}";

/// Escapes a text for HTML and SVG.
pub(super) fn escape_xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    // XML allows no control character, whatever it is written as.
    for c in visible(text).chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Renders a drawing as SVG.
pub(super) fn draw_svg(drawing: &Drawing) -> String {
    let mut body = String::new();
    let mut y = 28.0;
    text(
        &mut body,
        16.0,
        y,
        "t",
        &drawing.title,
        "font-size=\"17\" font-weight=\"600\"",
    );
    y += 20.0;
    text(&mut body, 16.0, y, "m", &drawing.subtitle, "");
    y += 34.0;
    y = effects(&mut body, &drawing.effects, y);
    if !drawing.units.is_empty() {
        y = units(&mut body, drawing, y + 20.0);
    }
    let height = y + 10.0;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\" \
         height=\"{height:.0}\" role=\"img\" aria-label=\"{}\"><style>{STYLE}</style>{body}</svg>",
        escape_xml(&drawing.title)
    )
}

fn effects(body: &mut String, effects: &[Effect], mut y: f64) -> f64 {
    let ends = effects.iter().flat_map(|row| {
        let interval = row.interval.map(|interval| [interval.low, interval.high]);
        interval.into_iter().flatten().chain(row.effect)
    });
    let reach = ends
        .filter(|end| end.is_finite())
        .fold(0.05_f64, |reach, end| reach.max(end.abs()));
    let at = |value: f64| {
        let middle = (LEFT + RIGHT) / 2.0;
        middle + value.clamp(-reach, reach) / reach * (RIGHT - LEFT) / 2.0
    };
    let top = y - 6.0;
    for row in effects {
        let kind = match row.kind {
            Kind::A => "a",
            Kind::B => "b",
            Kind::Neither => "n",
        };
        text(body, 16.0, y + 10.0, "t", &shortened(&row.name, 24), "");
        if let Some(interval) = row.interval {
            let (low, high) = (at(interval.low), at(interval.high));
            line(body, (low, y + 6.0), (high, y + 6.0), kind, 2.0);
            line(body, (low, y + 1.0), (low, y + 11.0), kind, 2.0);
            line(body, (high, y + 1.0), (high, y + 11.0), kind, 2.0);
        }
        if let Some(effect) = row.effect {
            circle(body, (at(effect), y + 6.0), kind);
        }
        text(
            body,
            LEFT,
            y + 28.0,
            "m",
            &shortened(&row.verdict, 90),
            "font-size=\"12\"",
        );
        y += 46.0;
    }
    line(body, (at(0.0), top), (at(0.0), y - 12.0), "z", 1.0);
    for value in [-reach, 0.0, reach] {
        let label = format!("{:+.0} %", value * 100.0);
        text(
            body,
            at(value),
            y + 6.0,
            "m",
            &label,
            "text-anchor=\"middle\" font-size=\"12\"",
        );
    }
    let label = "difference of B from A (points or percent)";
    text(
        body,
        at(0.0),
        y + 24.0,
        "m",
        label,
        "text-anchor=\"middle\" font-size=\"12\"",
    );
    y + 36.0
}

fn units(body: &mut String, drawing: &Drawing, mut y: f64) -> f64 {
    let most = drawing.units.iter().flat_map(|unit| [unit.a, unit.b]);
    let most = most
        .filter(|value| value.is_finite())
        .fold(f64::MIN_POSITIVE, f64::max);
    let at = |value: f64| LEFT + (value / most).clamp(0.0, 1.0) * (RIGHT - LEFT);
    text(
        body,
        16.0,
        y,
        "t",
        &drawing.unit_title,
        "font-weight=\"600\"",
    );
    circle(body, (RIGHT - 80.0, y - 4.0), "a");
    text(body, RIGHT - 72.0, y, "t", "A", "");
    circle(body, (RIGHT - 40.0, y - 4.0), "b");
    text(body, RIGHT - 32.0, y, "t", "B", "");
    y += 22.0;
    for unit in drawing.units.iter().take(MAX_UNITS) {
        text(
            body,
            16.0,
            y + 4.0,
            "t",
            &shortened(&unit.name, 24),
            "font-size=\"12\"",
        );
        line(body, (LEFT, y), (RIGHT, y), "l", 1.0);
        line(body, (at(unit.a), y), (at(unit.b), y), "n", 2.0);
        circle(body, (at(unit.a), y - 1.5), "a");
        circle(body, (at(unit.b), y + 1.5), "b");
        y += 18.0;
    }
    if drawing.units.len() > MAX_UNITS {
        let label = format!("and {} more", drawing.units.len() - MAX_UNITS);
        text(body, 16.0, y + 4.0, "m", &label, "font-size=\"12\"");
        y += 18.0;
    }
    y
}

fn text(body: &mut String, x: f64, y: f64, class: &str, content: &str, more: &str) {
    let content = escape_xml(content);
    let _ = write!(
        body,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\" {more}>{content}</text>"
    );
}

fn line(body: &mut String, from: (f64, f64), to: (f64, f64), class: &str, width: f64) {
    let _ = write!(
        body,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" class=\"{class}\" \
         stroke-width=\"{width}\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn circle(body: &mut String, at: (f64, f64), class: &str) {
    let _ = write!(
        body,
        "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\" class=\"{class}\"/>",
        at.0, at.1
    );
}

fn shortened(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_a_drawing_is_escaped() {
        let drawing = Drawing {
            title: "<script>alert(1)</script>".to_owned(),
            subtitle: "\u{1b}[2J & \"more\"".to_owned(),
            effects: Vec::new(),
            unit_title: String::new(),
            units: vec![Unit {
                name: "</svg><img src=x>".to_owned(),
                a: f64::NAN,
                b: f64::INFINITY,
            }],
        };
        let svg = draw_svg(&drawing);
        assert!(!svg.contains("<script"), "{svg}");
        assert!(!svg.contains("<img"), "{svg}");
        assert!(!svg.contains('\u{1b}'), "{svg}");
        assert_eq!(svg.matches("</svg>").count(), 1, "{svg}");
    }
}
