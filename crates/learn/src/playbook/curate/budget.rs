//! Keeps the active strategies of a playbook within its limits.

use windlass_spec::StrategySection;

use super::status::{RetiredReason, StrategyStatus};
use super::{CurationSettings, KeptStrategy};

/// At most one active strategy in this many is a pitfall.
const PITFALL_SHARE: usize = 4;

/// Retires strategies beyond the limits: the least reliable first, then the least recently used.
pub(super) fn retire_over_budget(
    kept: &mut [KeptStrategy],
    used: &[usize],
    settings: &CurationSettings,
) {
    let mut order: Vec<usize> = (0..kept.len())
        .filter(|&place| kept[place].status == StrategyStatus::Active)
        .collect();
    order.sort_by(|&left, &right| {
        let (one, two) = (&kept[left], &kept[right]);
        let pinned = two.strategy.pinned.cmp(&one.strategy.pinned);
        pinned
            .then(two.lower_bound().total_cmp(&one.lower_bound()))
            .then(used[right].cmp(&used[left]))
            .then(one.id.cmp(&two.id))
    });
    let (mut items, mut tokens, mut pitfalls) = (0, 0, 0);
    let most_pitfalls = settings.max_items / PITFALL_SHARE;
    for place in order {
        let this = &mut kept[place];
        let is_pitfall = this.strategy.section == StrategySection::Pitfalls;
        let length = this.strategy.content.as_str().len().div_ceil(4);
        let has_room = items < settings.max_items
            && tokens + length <= settings.max_tokens
            && (!is_pitfall || pitfalls < most_pitfalls);
        if has_room || this.strategy.pinned {
            items += 1;
            tokens += length;
            pitfalls += usize::from(is_pitfall);
        } else {
            this.status = StrategyStatus::Retired(RetiredReason::Budget);
        }
    }
}
