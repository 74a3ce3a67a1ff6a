//! Approvals and runs against a reference: whatever two processes on one database are asked to do, in
//! whatever order, and wherever they die, what comes of it is what the reference says, nothing has an
//! effect without leave or twice, and nothing that was decided changes or is lost.
//!
//! The processes are two stores opened independently, each with its own drivers. Time is set by hand.
//! A process dies by being dropped at a given moment; `PROPTEST_CASES` says how often to try.

mod desk;
mod floor;
mod hand;
mod things;
mod world;

use proptest::prelude::*;
use proptest::strategy::Union;
use proptest::test_runner::{Config, RngSeed};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};

use floor::Floor;
use hand::{Incident, What};
use things::{DAY, Hold, Kind, Person, Policy, Process, Row, Shown, Status, WINDOW, Which, Word};
use world::{Transition, World};

/// Each run adds to what must be compared, and three can get into each other's way well enough.
const MOST_RUNS: usize = 3;

struct Reference;

fn process() -> impl Strategy<Value = Process> {
    prop_oneof![Just(Process::Hasty), Just(Process::Patient)]
}

fn person() -> impl Strategy<Value = Person> {
    prop_oneof![
        6 => Just(Person::Ann),
        6 => Just(Person::Bob),
        1 => Just(Person::Stranger),
    ]
}

fn script() -> impl Strategy<Value = Vec<Vec<Kind>>> {
    let kind = prop_oneof![
        3 => Just(Kind::Pay),
        2 => Just(Kind::Wire),
        3 => Just(Kind::Note),
        1 => Just(Kind::Ask),
    ];
    prop::collection::vec(prop::collection::vec(kind, 1..4), 1..3)
}

fn word() -> impl Strategy<Value = Word> {
    prop_oneof![
        8 => Just(Word::Approve),
        3 => Just(Word::Edit),
        1 => Just(Word::EditBadly),
        2 => Just(Word::Reject),
        1 => Just(Word::Respond),
        3 => Just(Word::Answer),
    ]
}

fn shown() -> impl Strategy<Value = Shown> {
    prop_oneof![
        4 => Just(Shown::Unsaid),
        2 => Just(Shown::Asked),
        3 => Just(Shown::Now),
        1 => Just(Shown::Other),
    ]
}

/// The same transition with nothing else happening, with the death of the process at a moment that
/// comes, or with somebody doing something meanwhile.
fn with_incident(
    world: &World,
    run: usize,
    make: impl Fn(Option<Incident>) -> Transition + 'static,
) -> BoxedStrategy<Transition> {
    let plain = make(None);
    let moments = world.moments(&plain);
    if moments.is_empty() {
        return Just(plain).boxed();
    }
    let mut after = world.clone();
    after.take(&plain);
    let calls: Vec<Which> = after
        .calls()
        .into_iter()
        .filter(|which| which.run == run)
        .collect();
    let script = after.runs[run].script.clone();
    // The last moment at which something can be kept from happening is worth the most.
    let is_last = |at: &&String| at.starts_with("before started");
    let last: Vec<String> = moments.iter().filter(is_last).cloned().collect();
    let tried = [vec![moments.clone()], vec![last; 6]].concat().concat();
    let some = prop::sample::select(tried).prop_flat_map(move |at| {
        // What is done about the very call that is under way is what gets in its way.
        let is_named = |which: &&Which| at.ends_with(&which.to_string());
        let named = calls.iter().find(is_named).copied();
        let about = named.map_or_else(|| calls.clone(), |named| vec![named]);
        let is_note = |which: Which| script[which.turn][which.index] == Kind::Note;
        let about = prop::sample::select(about).boxed();
        let acts = match named.is_some_and(is_note) {
            true => undoes(about),
            false => decides(about),
        };
        let acts = acts.prop_map(|what| What::Meanwhile(Box::new(what)));
        let dies = any::<bool>().prop_map(|keeps| What::Dies { keeps });
        prop_oneof![1 => dies, 1 => acts].prop_map(move |what| {
            let at = at.clone();
            Some(Incident { at, what })
        })
    });
    // Whether a call that was started a moment ago is still broken off is anybody's guess.
    let is_sure = |at: &String| !at.contains("started") && !at.contains("ended");
    let sure: Vec<String> = moments.into_iter().filter(is_sure).collect();
    let none = Just(None).boxed();
    let stopped = match sure.is_empty() {
        true => none.clone(),
        false => (prop::sample::select(sure), process(), person())
            .prop_map(move |(at, process, person)| {
                let what = Transition::Cancel(process, run, person);
                let what = What::Meanwhile(Box::new(what));
                Some(Incident { at, what })
            })
            .boxed(),
    };
    prop_oneof![6 => none, 5 => some, 1 => stopped]
        .prop_map(make)
        .boxed()
}

impl ReferenceStateMachine for Reference {
    type State = World;
    type Transition = Transition;

    fn init_state() -> BoxedStrategy<World> {
        Just(World::new()).boxed()
    }

    fn transitions(world: &World) -> BoxedStrategy<Transition> {
        let mut all: Vec<(u32, BoxedStrategy<Transition>)> = Vec::new();
        let is_first = world.runs.is_empty();
        if world.runs.len() < MOST_RUNS {
            let world = world.clone();
            let start = (process(), script()).prop_flat_map(move |(process, script)| {
                let start = move |incident| Transition::Start(process, script.clone(), incident);
                with_incident(&world, world.runs.len(), start)
            });
            let weight = if is_first { 50 } else { 6 };
            all.push((weight, start.boxed()));
        }
        for (run, model) in world.runs.iter().enumerate() {
            let is_over = model.row == Row::Ended;
            let (often, seldom) = if is_over { (1, 1) } else { (12, 1) };
            for process in [Process::Hasty, Process::Patient] {
                let resume = move |incident| Transition::Resume(process, run, incident);
                let weight = if model.live.is_some() { seldom } else { often };
                all.push((weight, with_incident(world, run, resume)));
            }
            if model.live.is_some() {
                let work = move |incident| Transition::Work(run, incident);
                let is_idle = world.moments(&work(None)).is_empty();
                let weight = if is_idle { seldom } else { 2 * often };
                all.push((weight, with_incident(world, run, work)));
            }
            let cancel = (process(), person())
                .prop_map(move |(process, person)| Transition::Cancel(process, run, person));
            all.push((1, cancel.boxed()));
        }
        let calls: Vec<Which> = world.calls();
        let is_pending = |which: &Which| {
            let asked = world.runs[which.run].questions.get(which);
            asked
                .and_then(|asked| asked.last())
                .is_some_and(|question| question.status == Status::Pending)
        };
        let is_held = |which: &Which| {
            let hold = world.runs[which.run].holds.get(which);
            hold == Some(&Hold::Held)
        };
        let of = |is_fit: &dyn Fn(&Which) -> bool| -> Vec<Which> {
            calls.iter().copied().filter(is_fit).collect()
        };
        let mut some = |weight: u32, calls: Vec<Which>, make: Make| {
            if !calls.is_empty() {
                let calls = prop::sample::select(calls);
                all.push((weight, make(calls.boxed())));
            }
        };
        some(30, of(&is_pending), decides);
        some(5, calls.clone(), decides);
        some(8, of(&is_held), undoes);
        some(2, calls.clone(), undoes);
        let steps = prop::sample::select(vec![1, WINDOW - 1, WINDOW, WINDOW, DAY - WINDOW, DAY]);
        all.push((8, steps.prop_map(Transition::Pass).boxed()));
        let policies = vec![
            Policy::Usual,
            Policy::Usual,
            Policy::TwoForPay,
            Policy::NoPay,
        ];
        let policies = prop::sample::select(policies);
        all.push((3, policies.prop_map(Transition::LayDown).boxed()));
        let kill = (process(), any::<bool>());
        let kill = kill.prop_map(|(process, keeps)| Transition::Kill(process, keeps));
        all.push((4, kill.boxed()));
        all.push((2, process().prop_map(Transition::Sweep).boxed()));
        Union::new_weighted(all).boxed()
    }

    fn apply(mut world: World, transition: &Transition) -> World {
        world.take(transition);
        world
    }

    fn preconditions(world: &World, transition: &Transition) -> bool {
        let exists = |run: usize| run < world.runs.len();
        let is_made = |which: &Which| world.calls().contains(which);
        match transition {
            Transition::Resume(_, run, _) | Transition::Cancel(_, run, _) => exists(*run),
            Transition::Work(run, _) => exists(*run) && world.runs[*run].live.is_some(),
            Transition::Decide(_, which, ..)
            | Transition::Undo(_, which, _)
            | Transition::Release(_, which, _) => is_made(which),
            _ => true,
        }
    }
}

type Make = fn(BoxedStrategy<Which>) -> BoxedStrategy<Transition>;

fn decides(calls: BoxedStrategy<Which>) -> BoxedStrategy<Transition> {
    (process(), calls, person(), word(), shown())
        .prop_map(|(process, which, by, word, shown)| {
            Transition::Decide(process, which, by, word, shown)
        })
        .boxed()
}

fn undoes(calls: BoxedStrategy<Which>) -> BoxedStrategy<Transition> {
    (process(), calls, person(), any::<bool>())
        .prop_map(|(process, which, by, is_undo)| match is_undo {
            true => Transition::Undo(process, which, by),
            false => Transition::Release(process, which, by),
        })
        .boxed()
}

struct Machine;

impl StateMachineTest for Machine {
    type SystemUnderTest = Floor;
    type Reference = Reference;

    fn init_test(_: &World) -> Floor {
        Floor::new()
    }

    fn apply(mut floor: Floor, world: &World, transition: Transition) -> Floor {
        let came = floor.take(&transition, world);
        assert_eq!(came, world.came, "what comes of {transition:?}");
        let meanwhile = floor.meanwhile();
        assert_eq!(meanwhile, world.meanwhile, "during {transition:?}");
        floor
    }

    fn check_invariants(floor: &Floor, world: &World) {
        floor.check(world);
    }
}

fn config() -> Config {
    let cases = std::env::var("PROPTEST_CASES").ok();
    let seed = std::env::var("PROPTEST_RNG_SEED").ok();
    Config {
        cases: cases.and_then(|cases| cases.parse().ok()).unwrap_or(64),
        // The same cases every time, unless somebody wants others.
        rng_seed: RngSeed::Fixed(seed.and_then(|seed| seed.parse().ok()).unwrap_or(3)),
        failure_persistence: None,
        max_shrink_iters: 2_000,
        ..Config::default()
    }
}

prop_state_machine! {
    #![proptest_config(config())]

    #[test]
    fn approvals_and_runs_do_as_the_reference_says(sequential 1..40 => Machine);
}

/// Lets these things happen, one after the other.
fn happens(transitions: impl IntoIterator<Item = Transition>) -> World {
    let (mut world, mut floor) = (World::new(), Floor::new());
    for transition in transitions {
        world.take(&transition);
        floor = Machine::apply(floor, &world, transition);
        Machine::check_invariants(&floor, &world);
    }
    world
}

const FIRST: Which = Which {
    run: 0,
    turn: 0,
    index: 0,
};

fn starts(kind: Kind) -> Transition {
    Transition::Start(Process::Hasty, vec![vec![kind]], None)
}

fn approves() -> Transition {
    Transition::Decide(
        Process::Patient,
        FIRST,
        Person::Bob,
        Word::Approve,
        Shown::Unsaid,
    )
}

fn takes_up(death: &str) -> Transition {
    let death = (!death.is_empty()).then(|| Incident {
        at: death.to_owned(),
        what: What::Dies { keeps: false },
    });
    Transition::Resume(Process::Hasty, 0, death)
}

#[test]
fn a_run_whose_question_nobody_decided_goes_on_without_when_it_is_taken_up() {
    let world = happens([starts(Kind::Pay), Transition::Pass(DAY), takes_up("")]);
    assert_eq!(world.runs[0].row, Row::Ended);
    assert!(world.effects.is_empty());
}

#[test]
fn a_run_stopped_after_leave_was_given_and_before_the_call_started_does_not_start_it() {
    let world = happens([
        starts(Kind::Pay),
        approves(),
        takes_up("before started r1:1:0"),
        Transition::Cancel(Process::Patient, 0, Person::Ann),
        takes_up(""),
    ]);
    assert_eq!(world.runs[0].row, Row::Ended);
    assert!(world.effects.is_empty());
}

#[test]
fn a_call_undone_at_the_very_moment_it_would_start_does_not() {
    let undo = Transition::Undo(Process::Patient, FIRST, Person::Bob);
    let world = happens([
        starts(Kind::Note),
        Transition::Pass(WINDOW),
        Transition::Work(
            0,
            Some(Incident {
                at: "before started r1:1:0".to_owned(),
                what: What::Meanwhile(Box::new(undo)),
            }),
        ),
    ]);
    assert_eq!(world.runs[0].row, Row::Ended);
    assert!(world.effects.is_empty());
}

#[test]
fn a_process_that_died_with_the_tool_leaves_a_question_and_makes_no_second_payment() {
    let world = happens([
        starts(Kind::Pay),
        approves(),
        takes_up("after effect r1:1:0"),
        takes_up(""),
        Transition::Decide(Process::Hasty, FIRST, Person::Ann, Word::Answer, Shown::Now),
        takes_up(""),
    ]);
    assert_eq!(world.runs[0].row, Row::Ended);
    assert_eq!(world.effects.len(), 1);
}
