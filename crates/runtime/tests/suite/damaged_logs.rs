//! A write-ahead log or a database that was damaged, cut or deleted after a call had its effect. The call is not made again
//! before a person knows that it may have been made, and no call is made that nobody decided about.

use serde_json::json;
use windlass_core::approval::PersonDecision;
use windlass_core::model::ModelAnswer;
use windlass_core::run::{Event, Run};
use windlass_model::ScriptedModel;
use windlass_runtime::DriveError;
use windlass_spec::{CallRecord, CallState};

use super::fixture::{RunFixture, finishing_model};
use super::support::{call, new_task};

fn pay(to: &str) -> ModelAnswer {
    call("pay", json!({"to": to, "amount": 5}))
}

/// What the approver is shown of the pending questions.
fn questions(fixture: &RunFixture) -> String {
    let pending = fixture.pending();
    let texts = pending
        .iter()
        .map(|asked| format!("{:?}", asked.question()));
    texts.collect::<Vec<_>>().join("\n")
}

/// Resumes the run as often as it can continue. The approver approves what does not say that entries were lost.
async fn resume(fixture: &RunFixture, run: &Run, first: &ModelAnswer) -> Result<Run, DriveError> {
    let model = ScriptedModel::answers([first.clone()]);
    let mut run = fixture.driver(model).resume(run.id()).await?;
    for _ in 0..3 {
        let is_unaware =
            |text: &str| !text.is_empty() && !text.contains("the journal lost entries");
        // Whether an interrupted call took effect is asked in words: that approver knows, too.
        let pending = fixture.pending();
        let is_approvable = pending
            .iter()
            .all(|asked| asked.question().authorize().is_some());
        if !is_unaware(&questions(fixture)) || !is_approvable {
            break;
        }
        let before = fixture.effects();
        fixture.decide("bob", PersonDecision::Approve);
        run = fixture.driver(finishing_model()).resume(run.id()).await?;
        assert_eq!(fixture.effects(), before);
    }
    Ok(run)
}

/// Every position class of a log of this length: cut or with one flipped bit.
fn damages(length: usize) -> Vec<(Option<usize>, usize)> {
    let frame = 24 + 4096;
    let mut places = vec![0, 8, 16, 24];
    for start in (32..length).step_by(frame * 3) {
        places.extend([
            start,
            start + 4,
            start + 9,
            start + 17,
            start + 24,
            start + 2_000,
        ]);
    }
    places.retain(|place| *place < length);
    let flips = places.iter().map(|place| (Some(*place), length));
    let cuts = (0..length).step_by(frame * 3 + 500).map(|cut| (None, cut));
    flips.chain(cuts).collect()
}

async fn assert_made_once(fixture: &RunFixture, run: &Run, first: &ModelAnswer, made: &str) {
    let whole = std::fs::read(fixture.path().with_extension("db-wal")).unwrap();
    let mut asked = 0;
    for (flip, length) in damages(whole.len()) {
        let copy = fixture.copy(|mut log| {
            if let Some(place) = flip {
                log[place] ^= 0x10;
            }
            log.truncate(length);
            Some(log)
        });
        let resumed = resume(&copy, run, first).await;
        assert_eq!(fixture.effects(), [made], "{flip:?} {length}: {resumed:?}");
        if let Ok(run) = resumed {
            let events = copy.store().events(run.id()).unwrap();
            let is_noted = |event: &Event| matches!(event, Event::JournalDamaged { .. });
            assert!(
                events.iter().any(|(_, event)| is_noted(event)),
                "{flip:?} {length}"
            );
            asked += usize::from(questions(&copy).contains("the journal lost entries"));
        }
    }
    assert!(asked > 0, "no question states the reason");
    let copy = fixture.copy(|_| None);
    let _ = resume(&copy, run, first).await;
    assert_eq!(fixture.effects(), [made], "the log was deleted");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_payment_is_not_made_twice_after_the_log_was_damaged() {
    let fixture = RunFixture::signed();
    // Keeps the log.
    let open = fixture.store();
    let run = fixture
        .start(ScriptedModel::answers([pay("Bob")]), new_task("Pay Bob."))
        .await;
    fixture.decide("bob", PersonDecision::Approve);
    let run = fixture
        .resume(ScriptedModel::answers([pay("Eve")]), run.id())
        .await;
    let made = r#"pay {"amount":5,"to":"Bob"}"#;
    assert_eq!(fixture.effects(), [made]);
    assert_made_once(&fixture, &run, &pay("Bob"), made).await;
    // Without damage the run continues where it was.
    let copy = fixture.copy(Some);
    let run = resume_once(&copy, &run).await;
    assert_eq!(copy.effects().len(), 2, "{:?}", run.end());
    drop(open);
}

async fn resume_once(fixture: &RunFixture, run: &Run) -> Run {
    fixture.decide("bob", PersonDecision::Approve);
    fixture
        .driver(finishing_model())
        .resume(run.id())
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_call_is_not_made_twice_after_the_log_was_damaged() {
    let fixture = RunFixture::signed();
    let open = fixture.store();
    let note = call("note", json!({"text": "Milk"}));
    let model = ScriptedModel::answers([note.clone(), pay("Eve")]);
    let run = fixture.start(model, new_task("Note it.")).await;
    let made = r#"note {"text":"Milk"}"#;
    assert_eq!(fixture.effects(), [made]);
    assert_made_once(&fixture, &run, &note, made).await;
    drop(open);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_approver_learns_that_a_call_may_have_been_made() {
    let fixture = RunFixture::signed();
    let open = fixture.store();
    let note = call("note", json!({"text": "Milk"}));
    let model = ScriptedModel::answers([note.clone(), pay("Eve")]);
    let run = fixture.start(model, new_task("Note it.")).await;
    let mut outcomes = Vec::new();
    for length in (0..fixture.log_length()).step_by(4_120) {
        let copy = fixture.copy(|mut log| {
            log.truncate(length);
            Some(log)
        });
        let Ok(run) = resume(&copy, &run, &note).await else {
            continue;
        };
        let states: Vec<CallState> = run.calls().map(CallRecord::state).collect();
        if states.contains(&CallState::Unknown) {
            outcomes.push(questions(&copy));
        }
    }
    let is_told = |text: &String| text.contains("the journal lost entries");
    assert!(outcomes.iter().any(is_told), "{outcomes:?}");
    drop(open);
}

/// Every position class of a database of this length: the header of the file, the header of each page, its cell pointers,
/// its free space and its cells.
fn places_in_database(length: usize) -> Vec<usize> {
    const PAGE: usize = 4096;
    let header = [0, 16, 18, 24, 28, 32, 40, 44, 56, 60, 68, 92, 96];
    let within = [1, 5, 8, 12, 700, 1_900, 3_100, 3_700, 4_000, 4_080];
    let pages = (0..length)
        .step_by(PAGE)
        .zip(0..)
        .flat_map(|(page, number)| {
            let start = if page == 0 { 100 } else { 0 };
            // The first bytes of each page, and others in turn.
            let others = [number * 3, number * 3 + 1, number * 3 + 2]
                .map(|turn| within[turn % within.len()]);
            [0, 3]
                .into_iter()
                .chain(others)
                .map(move |place| page + start.max(place))
        });
    let mut places: Vec<usize> = header.into_iter().chain(pages).collect();
    places.retain(|place| *place < length);
    places.dedup();
    places
}

/// Damages the database at each place, or cuts it there, resumes the run, and checks what was done.
async fn assert_effects(fixture: &RunFixture, run: &Run, answer: &ModelAnswer, made: &[&str]) {
    let whole = std::fs::read(fixture.path()).unwrap();
    let places = places_in_database(whole.len());
    let cuts = places.iter().step_by(60).map(|place| (*place, true));
    let flips = places.iter().map(|place| (*place, false));
    let mut refused = 0;
    for (place, is_cut) in flips.chain(cuts) {
        let copy = fixture.copy_of_database(|database| match is_cut {
            true => database.truncate(place),
            false => database[place] ^= 0x11,
        });
        let Some(store) = copy.try_store() else {
            refused += 1;
            continue;
        };
        drop(store);
        let model = ScriptedModel::answers([answer.clone()]);
        let Some(driver) = copy.try_driver(model) else {
            refused += 1;
            continue;
        };
        refused += usize::from(driver.resume(run.id()).await.is_err());
        assert_eq!(fixture.effects(), made, "{place} {is_cut}");
    }
    assert!(refused > 0, "no damage is noticed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_database_makes_no_call_that_nobody_decided_about() {
    let fixture = RunFixture::signed();
    let run = fixture
        .start(ScriptedModel::answers([pay("Bob")]), new_task("Pay Bob."))
        .await;
    assert_effects(&fixture, &run, &pay("Bob"), &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_database_makes_no_payment_twice() {
    let fixture = RunFixture::signed();
    let run = fixture
        .start(ScriptedModel::answers([pay("Bob")]), new_task("Pay Bob."))
        .await;
    fixture.decide("bob", PersonDecision::Approve);
    let run = fixture
        .resume(ScriptedModel::answers([pay("Eve")]), run.id())
        .await;
    let made = r#"pay {"amount":5,"to":"Bob"}"#;
    assert_eq!(fixture.effects(), [made]);
    assert_effects(&fixture, &run, &pay("Bob"), &[made]).await;
}
