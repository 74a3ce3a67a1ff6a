//! Properties of binding that hold for every signature.

use std::collections::HashSet;
use std::sync::Arc;

use proptest::prelude::*;
use windlass_spec::{Field, NonEmptyText, Signature, ToolName, ToolSpecification, Type};
use windlass_tools::{BindingMode, Tool};

use super::{DESCRIPTION, builder, library};

/// Types from a small set, so that two of them are often the same or nearly so.
fn types(depth: u32) -> BoxedStrategy<Type> {
    let plain = prop_oneof![
        Just(Type::Text),
        Just(Type::Integer),
        Just(Type::Number),
        Just(Type::Object),
        Just(Type::options(["x", "y", "z"])),
        Just(Type::options(["z", "x"])),
    ];
    if depth == 0 {
        return plain.boxed();
    }
    prop_oneof![
        4 => plain,
        1 => returned(depth - 1).prop_map(Type::list),
        1 => fields(depth - 1).prop_map(Type::Record),
    ]
    .boxed()
}

fn returned(depth: u32) -> BoxedStrategy<Type> {
    prop_oneof![3 => types(depth), 1 => types(depth).prop_map(Type::nullable)].boxed()
}

fn fields(depth: u32) -> BoxedStrategy<Vec<Field>> {
    let name = prop::sample::select(vec!["a", "b", "required", "enum"]);
    let field = (
        name,
        types(depth),
        any::<bool>(),
        prop::option::of(Just("why".to_owned())),
    )
        .prop_map(|(name, ty, required, description)| {
            let field = if required {
                Field::required(name, ty)
            } else {
                Field::optional(name, ty)
            };
            Field {
                description,
                ..field
            }
        });
    prop::collection::vec(field, 0..3)
        .prop_map(|fields| {
            let mut seen = HashSet::new();
            fields
                .into_iter()
                .filter(|field| seen.insert(field.name.clone()))
                .collect()
        })
        .boxed()
}

fn signatures() -> impl Strategy<Value = Signature> {
    (fields(2), returned(2))
        .prop_map(|(parameters, returns)| Signature::new(parameters, returns).unwrap())
}

fn changed(signature: Signature, change: fn(&mut Field), reverse: bool) -> Signature {
    let (mut parameters, mut returns) = signature.into_parts();
    change_fields(&mut parameters, change, reverse);
    change_type(&mut returns, change, reverse);
    Signature::new(parameters, returns).unwrap()
}

fn change_fields(fields: &mut [Field], change: fn(&mut Field), reverse: bool) {
    for field in &mut *fields {
        change(field);
        change_type(&mut field.ty, change, reverse);
    }
    if reverse {
        fields.reverse();
    }
}

fn change_type(ty: &mut Type, change: fn(&mut Field), reverse: bool) {
    match ty {
        Type::List(inner) | Type::Nullable(inner) => change_type(inner, change, reverse),
        Type::Record(fields) => change_fields(fields, change, reverse),
        Type::Enum(options) if reverse => options.reverse(),
        _ => {}
    }
}

fn specification(signature: Signature) -> Arc<ToolSpecification> {
    Arc::new(ToolSpecification::new(
        ToolName::new("t").unwrap(),
        NonEmptyText::new(DESCRIPTION).unwrap(),
        signature,
    ))
}

fn implementation(signature: Signature) -> Tool {
    builder("t").signature(signature).build().unwrap()
}

fn binds(specification: &Arc<ToolSpecification>, tool: &Tool, mode: BindingMode) -> bool {
    library([tool.clone()])
        .bind_tool(specification, mode)
        .is_ok()
}

proptest! {
    #[test]
    fn exact_binding_implies_compatible_binding(one in signatures(), other in signatures()) {
        let (specification, tool) = (specification(one), implementation(other));
        if binds(&specification, &tool, BindingMode::Exact) {
            prop_assert!(binds(&specification, &tool, BindingMode::Compatible));
        }
    }

    #[test]
    fn the_order_of_fields_and_options_does_not_matter(signature in signatures()) {
        let tool = implementation(changed(signature.clone(), |_| {}, true));
        let specification = specification(signature);
        prop_assert!(binds(&specification, &tool, BindingMode::Exact));
        prop_assert!(binds(&specification, &tool, BindingMode::Compatible));
    }

    /// Here the schemas differ, so they are converted to types and compared.
    #[test]
    fn other_field_descriptions_are_compatible(signature in signatures()) {
        let undescribed = |field: &mut Field| field.description = None;
        let tool = implementation(changed(signature.clone(), undescribed, false));
        prop_assert!(binds(&specification(signature), &tool, BindingMode::Compatible));
    }
}
