//! The best consistent set of offers: one for each parameter, no part of the text used twice. Greedy by
//! score, then improved by exchanging pairs, which is where greed goes wrong.

use super::{OPTIONAL, OPTIONAL_NUMBER, Offer, REQUIRED};
use crate::parameter::{Kind, Parameter};

/// How many offers are weighed for one parameter.
const MOST_OFFERS: usize = 40;

/// The chosen offer of each parameter, with its lead over the next best offer for it.
pub(crate) fn assign(parameters: &[Parameter], offers: Vec<Offer>) -> Vec<Option<(Offer, f32)>> {
    let mut by_parameter: Vec<Vec<Offer>> = vec![Vec::new(); parameters.len()];
    for offer in offers {
        if offer.score >= bar(&parameters[offer.parameter]) {
            by_parameter[offer.parameter].push(offer);
        }
    }
    for list in &mut by_parameter {
        list.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.from.cmp(&b.from)));
        list.truncate(MOST_OFFERS);
    }
    let mut chosen = greedy(parameters, &by_parameter);
    improve(parameters, &by_parameter, &mut chosen);
    (0..chosen.len())
        .map(|parameter| {
            let list = &by_parameter[parameter];
            let offer = list.get(chosen[parameter]?)?;
            let others: Vec<(usize, usize)> = chosen
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != parameter)
                .filter_map(|(other, choice)| by_parameter[other].get((*choice)?))
                .map(|used| (used.from, used.to))
                .collect();
            let next = list
                .iter()
                .filter(|other| other.value != offer.value && !covered(&others, other))
                .map(|other| other.score)
                .fold(bar(&parameters[parameter]), f32::max);
            Some((offer.clone(), offer.score - next))
        })
        .collect()
}

fn covered(spans: &[(usize, usize)], offer: &Offer) -> bool {
    spans
        .iter()
        .any(|&(from, to)| offer.from < to && from < offer.to)
}

/// What an offer must score. A number is rarely stated in vain, so it needs less.
fn bar(parameter: &Parameter) -> f32 {
    let has_default = parameter.default.is_some() && parameter.kind == Kind::Text;
    if parameter.required && !has_default {
        REQUIRED
    } else if parameter.kind.is_numeric() {
        OPTIONAL_NUMBER
    } else {
        OPTIONAL
    }
}

/// Required parameters count for more: an optional one must not take what a required one needs.
fn weight(parameter: &Parameter) -> f32 {
    if parameter.required { 0.35 } else { 0.0 }
}

fn overlap(one: &Offer, other: &Offer) -> bool {
    one.from < other.to && other.from < one.to
}

fn greedy(parameters: &[Parameter], by_parameter: &[Vec<Offer>]) -> Vec<Option<usize>> {
    let mut order: Vec<(f32, usize, usize)> = Vec::new();
    for (parameter, list) in by_parameter.iter().enumerate() {
        for (index, offer) in list.iter().enumerate() {
            order.push((
                offer.score + weight(&parameters[parameter]),
                parameter,
                index,
            ));
        }
    }
    // Equal scores: parameters in their order take mentions in theirs.
    order.sort_by(|a, b| {
        b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(
            by_parameter[a.1][a.2]
                .from
                .cmp(&by_parameter[b.1][b.2].from),
        )
    });
    let mut chosen: Vec<Option<usize>> = vec![None; by_parameter.len()];
    let mut used: Vec<(usize, usize)> = Vec::new();
    for (_, parameter, index) in order {
        let offer = &by_parameter[parameter][index];
        if chosen[parameter].is_none() && !covered(&used, offer) {
            chosen[parameter] = Some(index);
            if offer.from < offer.to {
                used.push((offer.from, offer.to));
            }
        }
    }
    chosen
}

/// Exchanges two parameters' offers, or moves one out of the way of another, while that is better.
fn improve(parameters: &[Parameter], by_parameter: &[Vec<Offer>], chosen: &mut [Option<usize>]) {
    let count = chosen.len().min(24);
    for _ in 0..4 {
        let mut improved = false;
        for one in 0..count {
            for other in one + 1..count {
                if let Some((a, b)) = better_pair(parameters, by_parameter, chosen, one, other) {
                    chosen[one] = a;
                    chosen[other] = b;
                    improved = true;
                }
            }
        }
        if !improved {
            break;
        }
    }
}

type Pair = (Option<usize>, Option<usize>);

fn better_pair(
    parameters: &[Parameter],
    by_parameter: &[Vec<Offer>],
    chosen: &[Option<usize>],
    one: usize,
    other: usize,
) -> Option<Pair> {
    let free = |parameter: usize, index: usize| {
        let offer = &by_parameter[parameter][index];
        chosen.iter().enumerate().all(|(third, choice)| {
            third == one
                || third == other
                || choice.is_none_or(|choice| !overlap(&by_parameter[third][choice], offer))
        })
    };
    // Being filled at all is worth more than any difference between offers.
    let worth = |parameter: usize, index: Option<usize>| match index {
        Some(index) => {
            by_parameter[parameter][index].score
                + if parameters[parameter].required {
                    1.0
                } else {
                    0.0
                }
        }
        None if parameters[parameter].required => 0.0,
        // An optional one left out is as good as one that just passes.
        None => bar(&parameters[parameter]),
    };
    let few = |parameter: usize| -> Vec<Option<usize>> {
        (0..by_parameter[parameter].len())
            .filter(|&index| free(parameter, index))
            .take(8)
            .map(Some)
            .chain([None])
            .collect()
    };
    let now = worth(one, chosen[one]) + worth(other, chosen[other]);
    let mut best: Option<(f32, Pair)> = None;
    let others = few(other);
    for a in few(one) {
        for &b in &others {
            if let (Some(a), Some(b)) = (a, b)
                && overlap(&by_parameter[one][a], &by_parameter[other][b])
            {
                continue;
            }
            let total = worth(one, a) + worth(other, b);
            if total > now + 1e-3 && best.is_none_or(|(known, _)| total > known + 1e-6) {
                best = Some((total, (a, b)));
            }
        }
    }
    best.map(|(_, pair)| pair)
}
