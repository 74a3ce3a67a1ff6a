//! Assesses SQL by parsing it. The gravest statement counts, and SQL that cannot be parsed is
//! irreversible.
//!
//! Databases disagree about where strings and comments end, so a harmless string in one may be executed
//! in another. A text with such characters is parsed in each dialect, and the gravest reading counts.
//!
//! The parser limits its own recursion. The length of a text and its number of operators are limited
//! here, because a long chain of operators makes an equally deep syntax tree.

use sqlparser::ast::{AlterTableOperation, CopyTarget, Set, Statement};
use sqlparser::dialect::{
    BigQueryDialect, Dialect, GenericDialect, MsSqlDialect, MySqlDialect, PostgreSqlDialect,
    SQLiteDialect, SnowflakeDialect,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, Tokenizer, Whitespace};
use windlass_spec::RiskLevel;

use super::lexicon::{LEXICON, WordKind};
use super::reading::read_operation;
use super::url::Finding;

/// The maximum length of a text that is parsed.
const MAX_BYTES: usize = 256 * 1024;
/// The maximum number of keywords and operators of a text that is parsed.
const MAX_OPERATORS: usize = 1000;
/// The maximum nesting depth of the parser.
const MAX_DEPTH: usize = 24;

/// Assesses a text of SQL.
pub(super) fn assess(text: &str) -> Finding {
    if text.len() > MAX_BYTES {
        let what = format!("the SQL has {} bytes, too many to assess", text.len());
        return Finding::new(RiskLevel::Irreversible, what);
    }
    let contested =
        text.contains(['\\', '#', '`', '$', '[']) || text.contains("--") || text.contains("/*");
    let first = read_as(&GenericDialect {}, text);
    if let DialectReading::Finding { finding, .. } = &first
        && (!contested || finding.level == RiskLevel::Irreversible)
    {
        return finding.clone();
    }
    let others: [&dyn Dialect; 6] = [
        &PostgreSqlDialect {},
        &MySqlDialect {},
        &SQLiteDialect {},
        &MsSqlDialect {},
        &BigQueryDialect {},
        &SnowflakeDialect {},
    ];
    let readings =
        std::iter::once(first).chain(others.into_iter().map(|dialect| read_as(dialect, text)));
    combine(readings)
}

/// Assesses a text if it is SQL or a GraphQL mutation; `None` if it looks like neither.
pub(super) fn assess_if_sql(text: &str) -> Option<Finding> {
    const VERBS: [&str; 26] = [
        "alter", "analyze", "begin", "call", "comment", "copy", "create", "declare", "delete",
        "do", "drop", "exec", "execute", "explain", "grant", "insert", "lock", "merge", "pragma",
        "replace", "revoke", "select", "truncate", "update", "vacuum", "with",
    ];
    let start = text.trim_start_matches(|c: char| c.is_whitespace() || c == '(' || c == ';');
    let end = start
        .find(|c: char| !c.is_ascii_alphabetic())
        .unwrap_or(start.len());
    let word = start[..end].to_ascii_lowercase();
    if word == "mutation" && start.contains('{') {
        return Some(assess_mutation(start));
    }
    let comment = start.starts_with("--") || start.starts_with("/*");
    if !comment && !VERBS.contains(&word.as_str()) {
        return None;
    }
    // A question in English may start like SQL, but does not parse. A text that is too long to parse
    // counts as SQL.
    let parses = text.len() > MAX_BYTES || is_sql(text);
    parses.then(|| assess(text))
}

fn is_sql(text: &str) -> bool {
    let dialects: [&dyn Dialect; 3] = [&GenericDialect {}, &MySqlDialect {}, &MsSqlDialect {}];
    dialects.into_iter().any(|dialect| {
        matches!(
            read_as(dialect, text),
            DialectReading::Finding { .. } | DialectReading::TooMuch
        )
    })
}

fn assess_mutation(text: &str) -> Finding {
    // The fields of the mutation name the operations; arguments and selections only add words.
    let names = text
        .get(..4096)
        .unwrap_or(text)
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|name| !name.is_empty());
    let level = names
        .filter_map(read_operation)
        .max()
        .unwrap_or(RiskLevel::Reversible);
    Finding::new(
        level.max(RiskLevel::ReversibleWithDelay),
        "it is a GraphQL mutation",
    )
}

/// The reading of a text in one dialect.
enum DialectReading {
    Finding {
        finding: Finding,
        statements: usize,
    },
    /// It can be split into statements, but not parsed.
    NotParsed {
        statements: usize,
    },
    TooMuch,
    NotSql,
}

/// Returns the gravest reading. A reading that splits the text into more statements than those that
/// parse makes the result irreversible, because it may be the right one.
fn combine(readings: impl Iterator<Item = DialectReading>) -> Finding {
    let mut worst: Option<Finding> = None;
    let mut most_parsed = 0;
    let mut most_found = 0;
    for reading in readings {
        match reading {
            DialectReading::Finding {
                finding,
                statements,
            } => {
                most_parsed = most_parsed.max(statements);
                worst = Some(match worst {
                    Some(worst) => worst.worse(finding),
                    None => finding,
                });
            }
            DialectReading::NotParsed { statements } => most_found = most_found.max(statements),
            DialectReading::TooMuch => {
                let what = "the SQL is too long to assess";
                return Finding::new(RiskLevel::Irreversible, what);
            }
            DialectReading::NotSql => {}
        }
    }
    match worst {
        Some(finding) if most_found <= most_parsed => finding,
        Some(_) => Finding::new(
            RiskLevel::Irreversible,
            "databases disagree about where the statements of this SQL end",
        ),
        None => Finding::new(RiskLevel::Irreversible, "the SQL cannot be parsed"),
    }
}

fn read_as(dialect: &dyn Dialect, text: &str) -> DialectReading {
    let Ok(tokens) = Tokenizer::new(dialect, text).tokenize() else {
        return DialectReading::NotSql;
    };
    // MySQL executes the content of such a comment.
    let runs_comment = |token: &Token| match token {
        Token::Whitespace(Whitespace::MultiLineComment(text)) => text.starts_with(['!', 'M']),
        _ => false,
    };
    if tokens.iter().any(runs_comment) {
        let what = "the SQL has a comment that some databases execute";
        let finding = Finding::new(RiskLevel::Irreversible, what);
        return DialectReading::Finding {
            finding,
            statements: 1,
        };
    }
    let tokens: Vec<Token> = tokens
        .into_iter()
        .filter(|token| !matches!(token, Token::Whitespace(_)))
        .collect();
    if tokens.iter().filter(|token| is_operator(token)).count() > MAX_OPERATORS {
        return DialectReading::TooMuch;
    }
    if is_query_pragma(&tokens) {
        let finding = Finding::new(RiskLevel::Reversible, "the SQL only shows");
        return DialectReading::Finding {
            finding,
            statements: 1,
        };
    }
    let statements = tokens
        .split(|token| *token == Token::SemiColon)
        .filter(|part| !part.is_empty())
        .count();
    let words: Vec<Token> = tokens.clone();
    let parsed = Parser::new(dialect)
        .with_recursion_limit(MAX_DEPTH)
        .with_tokens(tokens)
        .parse_statements();
    match parsed {
        Ok(parsed) => DialectReading::Finding {
            finding: assess_statements(&parsed, &words),
            statements,
        },
        Err(_) => DialectReading::NotParsed { statements },
    }
}

/// Whether this is a query pragma of SQLite; the parser does not support all its forms.
fn is_query_pragma(tokens: &[Token]) -> bool {
    const QUERY_PRAGMAS: [&str; 9] = [
        "collation_list",
        "database_list",
        "foreign_key_list",
        "function_list",
        "index_info",
        "index_list",
        "table_info",
        "table_list",
        "table_xinfo",
    ];
    let [Token::Word(pragma), Token::Word(name), rest @ ..] = tokens else {
        return false;
    };
    let rest = rest.strip_suffix(&[Token::SemiColon]).unwrap_or(rest);
    let value = |token: &Token| matches!(token, Token::Word(_) | Token::SingleQuotedString(_));
    let complete = match rest {
        [] => true,
        [Token::LParen, of, Token::RParen] => value(of),
        _ => false,
    };
    let asks = QUERY_PRAGMAS
        .iter()
        .any(|asking| name.value.eq_ignore_ascii_case(asking));
    pragma.keyword == Keyword::PRAGMA && asks && complete
}

/// Whether a token may make the syntax tree deeper. Names, values, commas, dots and parentheses do not:
/// lists are flat, and the parser counts parentheses itself.
fn is_operator(token: &Token) -> bool {
    match token {
        Token::Word(word) => word.keyword != Keyword::NoKeyword,
        Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::DoubleQuotedString(_)
        | Token::NationalStringLiteral(_)
        | Token::EscapedStringLiteral(_)
        | Token::HexStringLiteral(_)
        | Token::Comma
        | Token::LParen
        | Token::RParen
        | Token::Period
        | Token::SemiColon => false,
        _ => true,
    }
}

fn assess_statements(statements: &[Statement], tokens: &[Token]) -> Finding {
    let nothing = Finding::new(RiskLevel::Reversible, "the SQL only reads");
    let worst = statements
        .iter()
        .map(assess_statement)
        .fold(nothing, Finding::worse);
    let queries_only = statements
        .iter()
        .all(|statement| matches!(statement, Statement::Query(_)));
    let by_words = assess_words(tokens, queries_only);
    by_words.into_iter().fold(worst, Finding::worse)
}

fn assess_statement(statement: &Statement) -> Finding {
    let mut statement = statement;
    // A prepared statement counts as if it ran. An explained one counts only if it also runs.
    loop {
        match statement {
            Statement::Explain {
                analyze: false,
                options: None,
                ..
            } => {
                return Finding::new(RiskLevel::Reversible, "the SQL only explains");
            }
            Statement::Explain {
                statement: inner, ..
            }
            | Statement::Prepare {
                statement: inner, ..
            } => {
                statement = inner;
            }
            _ => break,
        }
    }
    let (level, what) = assess_kind(statement);
    Finding::new(level, what)
}

fn assess_kind(statement: &Statement) -> (RiskLevel, &'static str) {
    use RiskLevel::{Irreversible, Reversible, ReversibleWithDelay};
    match statement {
        Statement::Query(_) => (Reversible, "the SQL only reads"),
        Statement::ExplainTable { .. }
        | Statement::ShowFunctions { .. }
        | Statement::ShowVariable { .. }
        | Statement::ShowStatus { .. }
        | Statement::ShowVariables { .. }
        | Statement::ShowCreate { .. }
        | Statement::ShowColumns { .. }
        | Statement::ShowCatalogs { .. }
        | Statement::ShowDatabases { .. }
        | Statement::ShowProcessList { .. }
        | Statement::ShowSchemas { .. }
        | Statement::ShowCharset(_)
        | Statement::ShowObjects(_)
        | Statement::ShowTables { .. }
        | Statement::ShowViews { .. }
        | Statement::ShowCollation { .. }
        | Statement::List(_) => (Reversible, "the SQL only shows"),
        Statement::Use(_)
        | Statement::Declare { .. }
        | Statement::Open(_)
        | Statement::Fetch { .. }
        | Statement::Close { .. }
        | Statement::Deallocate { .. }
        | Statement::StartTransaction { .. }
        | Statement::Savepoint { .. }
        | Statement::ReleaseSavepoint { .. }
        | Statement::Rollback { .. }
        | Statement::LISTEN { .. }
        | Statement::UNLISTEN { .. }
        | Statement::Print(_)
        | Statement::Set(Set::SingleAssignment { scope: None, .. }) => {
            (Reversible, "the SQL affects only its session")
        }
        Statement::Insert(insert) if insert.overwrite || insert.replace_into => {
            (Irreversible, "the SQL replaces rows")
        }
        Statement::Insert(_) => (ReversibleWithDelay, "the SQL inserts rows"),
        Statement::Update(update) if update.selection.is_some() => {
            (ReversibleWithDelay, "the SQL updates rows")
        }
        Statement::Update(_) => (Irreversible, "the SQL updates every row of a table"),
        Statement::Delete(_) => (Irreversible, "the SQL deletes rows"),
        Statement::Truncate(_) => (Irreversible, "the SQL empties a table"),
        Statement::Drop { .. }
        | Statement::DropFunction(_)
        | Statement::DropDomain(_)
        | Statement::DropProcedure { .. }
        | Statement::DropTrigger(_)
        | Statement::DropExtension(_)
        | Statement::DropPolicy(_) => (Irreversible, "the SQL drops something"),
        Statement::Copy {
            to: false,
            target: CopyTarget::Stdin | CopyTarget::File { .. },
            ..
        } => (ReversibleWithDelay, "the SQL loads rows"),
        Statement::AlterTable(alter) if alter.operations.iter().all(adds) => {
            (ReversibleWithDelay, "the SQL adds to a table")
        }
        Statement::CreateTable(create) if create.or_replace => {
            (Irreversible, "the SQL replaces a table")
        }
        Statement::CreateTable(_)
        | Statement::CreateView(_)
        | Statement::CreateVirtualTable { .. }
        | Statement::CreateIndex(_)
        | Statement::CreateSchema { .. }
        | Statement::CreateDatabase { .. }
        | Statement::CreateSequence { .. }
        | Statement::CreateType { .. }
        | Statement::CreateDomain(_)
        | Statement::CreateRole(_)
        | Statement::CreateUser(_)
        | Statement::CreatePolicy(_) => (ReversibleWithDelay, "the SQL creates something"),
        Statement::Comment { .. }
        | Statement::RenameTable(_)
        | Statement::Grant(_)
        | Statement::Analyze(_)
        | Statement::NOTIFY { .. }
        | Statement::Commit { .. }
        | Statement::Set(_)
        | Statement::Pragma { .. }
        | Statement::Lock(_)
        | Statement::LockTables { .. }
        | Statement::UnlockTables => (ReversibleWithDelay, "the SQL changes something"),
        // Anything that runs code, leaves the database, or is unknown.
        _ => (Irreversible, "the SQL may have a permanent effect"),
    }
}

fn adds(operation: &AlterTableOperation) -> bool {
    matches!(
        operation,
        AlterTableOperation::AddConstraint { .. }
            | AlterTableOperation::AddColumn { .. }
            | AlterTableOperation::AddPartitions { .. }
            | AlterTableOperation::RenameColumn { .. }
            | AlterTableOperation::RenameTable { .. }
            | AlterTableOperation::RenameConstraint { .. }
            | AlterTableOperation::ValidateConstraint { .. }
            | AlterTableOperation::EnableRowLevelSecurity
    )
}

/// Assesses the words inside statements: a query may contain statements that change data, and call
/// functions with side effects. Strings and comments do not count.
fn assess_words(tokens: &[Token], queries_only: bool) -> Option<Finding> {
    let mut worst: Option<Finding> = None;
    for (place, token) in tokens.iter().enumerate() {
        let Token::Word(word) = token else { continue };
        let before = place.checked_sub(1).and_then(|place| tokens.get(place));
        let after = tokens.get(place + 1);
        let found = if after == Some(&Token::LParen) {
            assess_function(&word.value, queries_only)
        } else if queries_only && word.quote_style.is_none() {
            let begins = matches!(before, Some(Token::LParen | Token::RParen));
            assess_keyword(word.keyword, begins)
        } else {
            None
        };
        if let Some(found) = found {
            worst = Some(match worst {
                Some(worst) => worst.worse(found),
                None => found,
            });
        }
    }
    worst
}

fn assess_keyword(keyword: Keyword, begins_statement: bool) -> Option<Finding> {
    let (level, what) = match keyword {
        Keyword::DELETE | Keyword::MERGE | Keyword::TRUNCATE if begins_statement => {
            (RiskLevel::Irreversible, "the query deletes rows")
        }
        Keyword::INSERT | Keyword::UPDATE if begins_statement => {
            (RiskLevel::ReversibleWithDelay, "the query changes rows")
        }
        Keyword::INTO => (
            RiskLevel::ReversibleWithDelay,
            "the query writes its result into a table",
        ),
        _ => return None,
    };
    Some(Finding::new(level, what))
}

fn assess_function(name: &str, in_query: bool) -> Option<Finding> {
    let lower = name.to_ascii_lowercase();
    let is = |kind| LEXICON.is(&lower, kind);
    let level = if is(WordKind::SqlFinal) {
        RiskLevel::Irreversible
    } else if is(WordKind::SqlChange) {
        RiskLevel::ReversibleWithDelay
    } else if is(WordKind::SqlHarmless) || !in_query {
        return None;
    } else {
        read_operation(name).filter(|level| *level > RiskLevel::Reversible)?
    };
    let what = format!("the SQL calls `{}`", super::sources::shown(name));
    Some(Finding::new(level, what))
}
