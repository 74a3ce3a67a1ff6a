//! Properties of all answers and all JSON.

use proptest::prelude::*;

use super::generate::{any_envelope_like, any_json, any_response};
use super::{normalised, schemas};
use crate::envelope::{Answer, ToolResponse};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_canonical_answer_reads_back_is_valid_and_is_not_changed(response in any_response()) {
        let json = response.for_operator();
        schemas::assert_valid(&json);
        prop_assert_eq!(&ToolResponse::from_value(json.clone()).unwrap(), &response);
        let normalised = normalised(&json);
        prop_assert_eq!(&normalised.response, &response);
        prop_assert_eq!(normalised.notices, vec![]);
    }

    #[test]
    fn the_view_for_models_is_valid(response in any_response()) {
        schemas::assert_valid(&response.for_model());
    }

    #[test]
    fn normalising_never_fails_and_is_idempotent(
        json in prop_oneof![any_envelope_like(), any_envelope_like(), any_json()],
    ) {
        let once = normalised(&json);
        let written = once.response.for_operator();
        schemas::assert_valid(&written);
        let twice = normalised(&written);
        prop_assert_eq!(&twice.response, &once.response);
        prop_assert_eq!(twice.notices, vec![]);
    }

    #[test]
    fn strict_reading_and_normalising_agree(json in any_envelope_like()) {
        if let Ok(read) = ToolResponse::from_value(json.clone()) {
            prop_assert_eq!(normalised(&json).response, read);
        }
    }

    #[test]
    fn an_error_is_never_normalised_to_a_success(json in any_envelope_like()) {
        let has_error_status = json["status"].as_str().is_some_and(|word| word.eq_ignore_ascii_case("error"));
        if has_error_status {
            let is_error = matches!(normalised(&json).response.answer(), Answer::Error { .. });
            prop_assert!(is_error);
        }
    }
}
