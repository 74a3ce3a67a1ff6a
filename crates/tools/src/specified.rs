//! Derives a specification from an implementation, for tools that no agent file declares.

use windlass_spec::{
    Inexpressible, NonEmptyText, Signature, ToolSpecification, Type, parameters_from_schema,
};

use crate::tool::Tool;

impl Tool {
    /// The signature of its schemas.
    ///
    /// # Errors
    /// Why no signature can express them.
    pub fn signature(&self) -> Result<Signature, String> {
        let parameters = parameters_from_schema(self.schema()).map_err(|reasons| {
            format!(
                "no signature can express what it takes{}",
                list_reasons(&reasons)
            )
        })?;
        let returns = self
            .returns_schema()
            .ok_or("it does not declare what it returns")?;
        let returns = Type::from_schema(returns).map_err(|reasons| {
            format!(
                "no signature can express what it returns{}",
                list_reasons(&reasons)
            )
        })?;
        Signature::new(parameters, returns).map_err(|error| error.to_string())
    }

    /// The specification of the implementation, with the attributes that its author declares.
    ///
    /// # Errors
    /// Why no signature can express its schemas.
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

fn list_reasons(reasons: &[Inexpressible]) -> String {
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
    fn an_expressible_schema_becomes_a_signature() {
        let takes = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": false});
        let tool = tool(takes, Some(json!({"type": "string"})));
        let signature = tool.map(|tool| tool.signature().map(|signature| signature.to_string()));
        assert_eq!(signature, Some(Ok("(n: Int) --> IO Text".to_owned())));
    }

    #[test]
    fn an_inexpressible_schema_is_reported() {
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
            let error = tool.and_then(|tool| tool.signature().err());
            assert!(
                error.as_ref().is_some_and(|error| error.contains(why)),
                "{error:?}"
            );
        }
    }
}
