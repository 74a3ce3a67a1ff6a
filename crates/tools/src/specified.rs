//! What an implementation says of itself, as a specification: for tools that nobody declared.

use windlass_spec::{
    Inexpressible, NonEmptyText, Signature, ToolSpecification, Type, parameters_from_schema,
};

use crate::tool::Tool;

impl Tool {
    /// What it takes and gives as a signature.
    ///
    /// # Errors
    /// Why no signature says it.
    pub fn signature(&self) -> Result<Signature, String> {
        let parameters = parameters_from_schema(self.schema())
            .map_err(|reasons| format!("no signature says what it takes{}", listed(&reasons)))?;
        let returns = self
            .returns_schema()
            .ok_or("it does not say what it returns")?;
        let returns = Type::from_schema(returns)
            .map_err(|reasons| format!("no signature says what it returns{}", listed(&reasons)))?;
        Signature::new(parameters, returns).map_err(|error| error.to_string())
    }

    /// A specification that says what the implementation says, and declares what its author does.
    ///
    /// # Errors
    /// Why no signature says what it takes or gives.
    pub fn specification(&self) -> Result<ToolSpecification, String> {
        let description = NonEmptyText::or(self.description(), "(no description)");
        let specification =
            ToolSpecification::new(self.name().clone(), description, self.signature()?);
        match self.attributes() {
            Some(own) => specification
                .with_attributes(own.clone())
                .map_err(|error| error.to_string()),
            None => Ok(specification),
        }
    }
}

fn listed(reasons: &[Inexpressible]) -> String {
    reasons
        .iter()
        .map(|reason| format!("\n  {reason}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::tool::Tool;
    use serde_json::{Value, json};

    fn tool(schema: Value, returns: Option<Value>) -> Option<Tool> {
        let mut builder = Tool::builder("t")
            .description("Does it")
            .schema(schema)
            .handler(|_| async { Ok(json!(1)) });
        if let Some(returns) = returns {
            builder = builder.returns(returns);
        }
        builder.build().ok()
    }

    #[test]
    fn a_schema_that_a_signature_says_becomes_one() {
        let takes = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false});
        let tool = tool(takes, Some(json!({"type": "string"})));
        let said = tool.map(|tool| tool.signature().map(|said| said.to_string()));
        assert_eq!(said, Some(Ok("(n: Int) --> IO Text".to_owned())));
    }

    #[test]
    fn a_schema_that_no_signature_says_is_said_to_be_one() {
        let pattern = json!({"type": "object", "properties": {"n": {"type": "string", "pattern": "^a"}}, "additionalProperties": false});
        for (takes, returns, why) in [
            (pattern.clone(), Some(json!({"type": "string"})), "takes"),
            (
                json!({"type": "object", "properties": {}, "additionalProperties": false}),
                None,
                "returns",
            ),
        ] {
            let tool = tool(takes, returns);
            let said = tool.and_then(|tool| tool.signature().err());
            assert!(
                said.as_ref().is_some_and(|said| said.contains(why)),
                "{said:?}"
            );
        }
    }
}
