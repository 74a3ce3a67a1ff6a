//! Finds the best consistent set of candidates: at most one for each parameter, and no part of the text used
//! twice. A greedy choice by score is improved by exchanging pairs.

use super::{Candidate, OPTIONAL, OPTIONAL_NUMBER, REQUIRED};
use crate::parameter::{Kind, Parameter};

/// The most candidates that are compared for one parameter.
const MAX_CANDIDATES: usize = 40;

/// The chosen candidate of each parameter, with its margin over the next best candidate.
pub(crate) fn assign(
    parameters: &[Parameter],
    candidates: Vec<Candidate>,
) -> Vec<Option<(Candidate, f32)>> {
    let mut by_parameter: Vec<Vec<Candidate>> = vec![Vec::new(); parameters.len()];
    for candidate in candidates {
        if candidate.score >= threshold(&parameters[candidate.parameter]) {
            by_parameter[candidate.parameter].push(candidate);
        }
    }
    for list in &mut by_parameter {
        list.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.from.cmp(&b.from)));
        list.truncate(MAX_CANDIDATES);
    }
    let mut chosen = greedy(parameters, &by_parameter);
    improve(parameters, &by_parameter, &mut chosen);
    (0..chosen.len())
        .map(|parameter| {
            let list = &by_parameter[parameter];
            let candidate = list.get(chosen[parameter]?)?;
            let others: Vec<(usize, usize)> = chosen
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != parameter)
                .filter_map(|(other, choice)| by_parameter[other].get((*choice)?))
                .map(|used| (used.from, used.to))
                .collect();
            let next = list
                .iter()
                .filter(|other| other.value != candidate.value && !covered(&others, other))
                .map(|other| other.score)
                .fold(threshold(&parameters[parameter]), f32::max);
            Some((candidate.clone(), candidate.score - next))
        })
        .collect()
}

fn covered(spans: &[(usize, usize)], candidate: &Candidate) -> bool {
    spans
        .iter()
        .any(|&(from, to)| candidate.from < to && from < candidate.to)
}

/// The score that a candidate needs. Numbers need less, because a number in a text is rarely irrelevant.
fn threshold(parameter: &Parameter) -> f32 {
    let has_default = parameter.default.is_some() && parameter.kind == Kind::Text;
    if parameter.required && !has_default {
        REQUIRED
    } else if parameter.kind.is_numeric() {
        OPTIONAL_NUMBER
    } else {
        OPTIONAL
    }
}

/// The extra weight of required parameters, so that no optional parameter takes their values.
fn weight(parameter: &Parameter) -> f32 {
    if parameter.required { 0.35 } else { 0.0 }
}

fn overlap(one: &Candidate, other: &Candidate) -> bool {
    one.from < other.to && other.from < one.to
}

fn greedy(parameters: &[Parameter], by_parameter: &[Vec<Candidate>]) -> Vec<Option<usize>> {
    let mut order: Vec<(f32, usize, usize)> = Vec::new();
    for (parameter, list) in by_parameter.iter().enumerate() {
        for (index, candidate) in list.iter().enumerate() {
            order.push((
                candidate.score + weight(&parameters[parameter]),
                parameter,
                index,
            ));
        }
    }
    // Ties: earlier parameters take earlier mentions.
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
        let candidate = &by_parameter[parameter][index];
        if chosen[parameter].is_none() && !covered(&used, candidate) {
            chosen[parameter] = Some(index);
            if candidate.from < candidate.to {
                used.push((candidate.from, candidate.to));
            }
        }
    }
    chosen
}

/// Exchanges the candidates of two parameters, or changes one for the other, while that raises the score.
fn improve(
    parameters: &[Parameter],
    by_parameter: &[Vec<Candidate>],
    chosen: &mut [Option<usize>],
) {
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
    by_parameter: &[Vec<Candidate>],
    chosen: &[Option<usize>],
    one: usize,
    other: usize,
) -> Option<Pair> {
    let free = |parameter: usize, index: usize| {
        let candidate = &by_parameter[parameter][index];
        chosen.iter().enumerate().all(|(third, choice)| {
            third == one
                || third == other
                || choice.is_none_or(|choice| !overlap(&by_parameter[third][choice], candidate))
        })
    };
    // A filled required parameter is worth more than any difference between candidates.
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
        // An omitted optional parameter counts like a candidate at the threshold.
        None => threshold(&parameters[parameter]),
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
