//! What SQL does, found by parsing it. Several statements are as grave as the gravest of them, and
//! what cannot be parsed may be anything.
//!
//! Databases disagree about where texts and comments end, so what one of them reads as a harmless
//! string another runs. Where a text holds signs they disagree about, it is parsed as each of them
//! would, and the gravest reading counts.
//!
//! The parser bounds its own recursion; how long and how chained a text may be is bounded here,
//! because the syntax tree of a long chain of operators is as deep as the chain is long.

use sqlparser::ast::{AlterTableOperation, CopyTarget, Set, Statement};
use sqlparser::dialect::{
    BigQueryDialect, Dialect, GenericDialect, MsSqlDialect, MySqlDialect, PostgreSqlDialect,
    SQLiteDialect, SnowflakeDialect,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, Tokenizer, Whitespace};
use windlass_spec::RiskLevel;

use super::lexicon::{Kind, LEXICON};
use super::reading::read_operation;
use super::url::Judged;

/// Longer texts are not parsed.
const MAX_BYTES: usize = 256 * 1024;
/// Texts with more keywords and operators than this are not parsed.
const MAX_OPERATORS: usize = 1000;
/// How deep the parser may nest.
const MAX_DEPTH: usize = 24;

/// What a text of SQL does.
pub(super) fn judge(text: &str) -> Judged {
    if text.len() > MAX_BYTES {
        let what = format!("{} bytes of SQL are too much to judge", text.len());
        return Judged::new(RiskLevel::Irreversible, what);
    }
    let contested =
        text.contains(['\\', '#', '`', '$', '[']) || text.contains("--") || text.contains("/*");
    let first = judge_as(&GenericDialect {}, text);
    if let Reading::Judged { judged, .. } = &first
        && (!contested || judged.level == RiskLevel::Irreversible)
    {
        return judged.clone();
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
        std::iter::once(first).chain(others.into_iter().map(|dialect| judge_as(dialect, text)));
    combine(readings)
}

/// What a text does if it is SQL, or a GraphQL mutation; `None` if it looks like neither.
pub(super) fn judge_if_sql(text: &str) -> Option<Judged> {
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
        return Some(judge_mutation(start));
    }
    let comment = start.starts_with("--") || start.starts_with("/*");
    if !comment && !VERBS.contains(&word.as_str()) {
        return None;
    }
    // A question in English may begin like SQL; then it does not parse. What is too long to tell
    // is taken for what it looks like.
    let parses = text.len() > MAX_BYTES || is_sql(text);
    parses.then(|| judge(text))
}

fn is_sql(text: &str) -> bool {
    let dialects: [&dyn Dialect; 3] = [&GenericDialect {}, &MySqlDialect {}, &MsSqlDialect {}];
    dialects.into_iter().any(|dialect| {
        matches!(
            judge_as(dialect, text),
            Reading::Judged { .. } | Reading::TooMuch
        )
    })
}

fn judge_mutation(text: &str) -> Judged {
    // The fields of the mutation say what is done; arguments and selections only add words.
    let names = text
        .get(..4096)
        .unwrap_or(text)
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|name| !name.is_empty());
    let level = names
        .filter_map(read_operation)
        .max()
        .unwrap_or(RiskLevel::Reversible);
    Judged::new(
        level.max(RiskLevel::ReversibleWithDelay),
        "it is a GraphQL mutation",
    )
}

/// What one dialect makes of a text.
enum Reading {
    Judged {
        judged: Judged,
        statements: usize,
    },
    /// It can be taken apart into so many statements, but not parsed.
    NotParsed {
        statements: usize,
    },
    TooMuch,
    NotSql,
}

/// The gravest reading. One that splits the text into more statements than those that parse is
/// believed, for it may be the right one.
fn combine(readings: impl Iterator<Item = Reading>) -> Judged {
    let mut worst: Option<Judged> = None;
    let mut most_parsed = 0;
    let mut most_found = 0;
    for reading in readings {
        match reading {
            Reading::Judged { judged, statements } => {
                most_parsed = most_parsed.max(statements);
                worst = Some(match worst {
                    Some(worst) => worst.worse(judged),
                    None => judged,
                });
            }
            Reading::NotParsed { statements } => most_found = most_found.max(statements),
            Reading::TooMuch => {
                let what = "the SQL is too long to judge";
                return Judged::new(RiskLevel::Irreversible, what);
            }
            Reading::NotSql => {}
        }
    }
    match worst {
        Some(judged) if most_found <= most_parsed => judged,
        Some(_) => Judged::new(
            RiskLevel::Irreversible,
            "databases disagree about where the statements of this SQL end",
        ),
        None => Judged::new(RiskLevel::Irreversible, "the SQL cannot be parsed"),
    }
}

fn judge_as(dialect: &dyn Dialect, text: &str) -> Reading {
    let Ok(tokens) = Tokenizer::new(dialect, text).tokenize() else {
        return Reading::NotSql;
    };
    // MySQL runs what stands in such a comment.
    let runs_comment = |token: &Token| match token {
        Token::Whitespace(Whitespace::MultiLineComment(text)) => text.starts_with(['!', 'M']),
        _ => false,
    };
    if tokens.iter().any(runs_comment) {
        let what = "the SQL holds a comment that some databases run";
        let judged = Judged::new(RiskLevel::Irreversible, what);
        return Reading::Judged {
            judged,
            statements: 1,
        };
    }
    let tokens: Vec<Token> = tokens
        .into_iter()
        .filter(|token| !matches!(token, Token::Whitespace(_)))
        .collect();
    if tokens.iter().filter(|token| is_operator(token)).count() > MAX_OPERATORS {
        return Reading::TooMuch;
    }
    if is_asking_pragma(&tokens) {
        let judged = Judged::new(RiskLevel::Reversible, "the SQL only shows");
        return Reading::Judged {
            judged,
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
        Ok(parsed) => Reading::Judged {
            judged: judge_statements(&parsed, &words),
            statements,
        },
        Err(_) => Reading::NotParsed { statements },
    }
}

/// Whether this is a pragma of SQLite that asks, which the parser does not take in all its forms.
fn is_asking_pragma(tokens: &[Token]) -> bool {
    const ASKING: [&str; 9] = [
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
    let asks = ASKING
        .iter()
        .any(|asking| name.value.eq_ignore_ascii_case(asking));
    pragma.keyword == Keyword::PRAGMA && asks && complete
}

/// Whether a token may make the syntax tree deeper. Names, values, commas, dots and brackets do
/// not: lists are flat, and the parser counts brackets itself.
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

fn judge_statements(statements: &[Statement], tokens: &[Token]) -> Judged {
    let nothing = Judged::new(RiskLevel::Reversible, "the SQL only reads");
    let worst = statements
        .iter()
        .map(judge_statement)
        .fold(nothing, Judged::worse);
    let queries_only = statements
        .iter()
        .all(|statement| matches!(statement, Statement::Query(_)));
    let by_words = judge_words(tokens, queries_only);
    by_words.into_iter().fold(worst, Judged::worse)
}

fn judge_statement(statement: &Statement) -> Judged {
    let mut statement = statement;
    // What is only prepared or explained is judged as if it were run, unless it is not run at all.
    loop {
        match statement {
            Statement::Explain {
                analyze: false,
                options: None,
                ..
            } => {
                return Judged::new(RiskLevel::Reversible, "the SQL only explains");
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
    let (level, what) = judge_kind(statement);
    Judged::new(level, what)
}

fn judge_kind(statement: &Statement) -> (RiskLevel, &'static str) {
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
            (Reversible, "the SQL concerns only its session")
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
        // Whatever runs code, leaves the database, or is not known here.
        _ => (Irreversible, "the SQL may do something for good"),
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

/// What words inside statements say: a query may hold statements that change, and call functions
/// with side effects. Strings and comments are no words here.
fn judge_words(tokens: &[Token], queries_only: bool) -> Option<Judged> {
    let mut worst: Option<Judged> = None;
    for (place, token) in tokens.iter().enumerate() {
        let Token::Word(word) = token else { continue };
        let before = place.checked_sub(1).and_then(|place| tokens.get(place));
        let after = tokens.get(place + 1);
        let found = if after == Some(&Token::LParen) {
            judge_function(&word.value, queries_only)
        } else if queries_only && word.quote_style.is_none() {
            let begins = matches!(before, Some(Token::LParen | Token::RParen));
            judge_keyword(word.keyword, begins)
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

fn judge_keyword(keyword: Keyword, begins_statement: bool) -> Option<Judged> {
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
    Some(Judged::new(level, what))
}

fn judge_function(name: &str, in_query: bool) -> Option<Judged> {
    let lower = name.to_ascii_lowercase();
    let is = |kind| LEXICON.is(&lower, kind);
    let level = if is(Kind::SqlFinal) {
        RiskLevel::Irreversible
    } else if is(Kind::SqlChange) {
        RiskLevel::ReversibleWithDelay
    } else if is(Kind::SqlHarmless) || !in_query {
        return None;
    } else {
        read_operation(name).filter(|level| *level > RiskLevel::Reversible)?
    };
    let what = format!("the SQL calls `{}`", super::sources::shown(name));
    Some(Judged::new(level, what))
}
