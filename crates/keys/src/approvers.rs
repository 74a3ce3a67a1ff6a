//! The list of approvers: who may decide, with which public keys. It is kept with the keys and never in the database,
//! so that a process that can write the database can neither add an approver nor exchange a key. The installation
//! signs it, so that the list of another installation does not pass.

use std::env;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::approver::ApproverKey;
use crate::directory::{KeyDirectory, KeyError};
use crate::hex;
use crate::installation::{InstallationKey, PublicKey};
use crate::journal_key::{JournalKey, sha256};

/// The file of the list.
const FILE: &str = "approvers.json";

/// The file that says that there is a list, so that one that is missing later is noticed.
const MADE: &str = "approvers.made";

/// The file that is locked while the list is changed.
const LOCK: &str = "approvers.lock";

/// The variable that names the file of the list, for workers that share the list of another machine.
const FILE_VARIABLE: &str = "WINDLASS_APPROVERS_FILE";

/// What a signature of the list is for.
const PURPOSE: &str = "windlass approvers 1\n";

/// What the signature of a delegation is for.
const DELEGATION: &str = "windlass delegation 1\n";

/// The approvers of an installation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApproverList {
    /// The user that the installation belongs to: the first approver, and the principal of runs that are started here.
    pub owner: String,
    /// When the list was made, in microseconds since 1970. Decisions from before are not signed.
    pub since: i64,
    /// The public key of the installation. It also signs what servers attest.
    pub installation: PublicKey,
    /// The approvers, in the order in which they were added.
    pub approvers: Vec<Approver>,
    /// Who decides for somebody else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delegations: Vec<Delegation>,
}

/// An approver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approver {
    /// The name, as decisions record it.
    pub name: String,
    /// The public key; `None` for somebody who decides only through a server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<PublicKey>,
    /// Whether the key may approve calls that nobody looked at.
    #[serde(default)]
    pub unattended: bool,
    /// When the approver was added, in microseconds since 1970.
    pub added_at: i64,
}

/// A delegation: until a date, one approver decides for another one as well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delegation {
    /// Who delegates.
    pub from: String,
    /// Who decides instead.
    pub to: String,
    /// Until when, in microseconds since 1970.
    pub until: i64,
    /// When it was made, in microseconds since 1970.
    pub at: i64,
    /// The signature of the one who delegates.
    pub signature: String,
}

impl Delegation {
    /// A delegation that the one who delegates signs.
    #[must_use]
    pub fn sign(key: &ApproverKey, to: &str, until: i64, at: i64) -> Self {
        let mut delegation = Self {
            from: key.name().to_owned(),
            to: to.to_owned(),
            until,
            at,
            signature: String::new(),
        };
        delegation.signature = hex::encode(&key.sign(&delegation.message()));
        delegation
    }

    fn message(&self) -> Vec<u8> {
        let Self {
            from,
            to,
            until,
            at,
            ..
        } = self;
        let fields = serde_json::json!([from, to, until, at]);
        format!("{DELEGATION}{fields}").into_bytes()
    }

    fn is_signed_by(&self, key: &PublicKey) -> bool {
        let signature: Option<[u8; 64]> = hex::decode(&self.signature);
        signature.is_some_and(|signature| key.has_signed(&self.message(), &signature))
    }
}

impl ApproverList {
    /// The approver of that name. Names that differ only in case are one person.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Approver> {
        let mut approvers = self.approvers.iter();
        approvers.find(|approver| is_same(&approver.name, name))
    }

    /// Whether one approver may decide for another one at that time, in microseconds since 1970.
    #[must_use]
    pub fn may_decide_for(&self, to: &str, from: &str, at: i64) -> bool {
        let key = self.find(from).and_then(|approver| approver.key.as_ref());
        self.delegations.iter().any(|delegation| {
            is_same(&delegation.from, from)
                && is_same(&delegation.to, to)
                && at >= delegation.at
                && at < delegation.until
                && key.is_some_and(|key| delegation.is_signed_by(key))
        })
    }

    /// The digest of the list, for the record of its changes.
    #[must_use]
    pub fn digest(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        format!("sha256:{}", hex::encode(&sha256(text.as_bytes())))
    }

    /// Adds an approver.
    ///
    /// # Errors
    /// If there is one of that name or with that key.
    pub fn add(&mut self, approver: Approver) -> Result<(), KeyError> {
        if let Some(found) = self.find(&approver.name) {
            let message = format!("`{}` is an approver already", found.name);
            return Err(KeyError::NotPossible(message));
        }
        let mut approvers = self.approvers.iter();
        if let Some(found) =
            approvers.find(|found| approver.key.is_some() && found.key == approver.key)
        {
            let message = format!(
                "this key is that of the approver `{}`; two approvers need two keys",
                found.name
            );
            return Err(KeyError::NotPossible(message));
        }
        self.approvers.push(approver);
        Ok(())
    }

    /// Removes an approver, with the delegations from and to them.
    ///
    /// # Errors
    /// If there is none of that name, or it is the last one.
    pub fn remove(&mut self, name: &str) -> Result<Approver, KeyError> {
        let mut approvers = self.approvers.iter();
        let index = approvers.position(|approver| is_same(&approver.name, name));
        let index =
            index.ok_or_else(|| KeyError::NotPossible(format!("there is no approver `{name}`")))?;
        if self.approvers.len() == 1 {
            let message = "nobody could decide without the last approver; add another one first";
            return Err(KeyError::NotPossible(message.to_owned()));
        }
        self.delegations.retain(|delegation| {
            !is_same(&delegation.from, name) && !is_same(&delegation.to, name)
        });
        Ok(self.approvers.remove(index))
    }
}

fn is_same(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

/// Where the approvers of an installation are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approvers {
    directory: KeyDirectory,
    /// A list that the environment names. It is read and not changed.
    named: Option<PathBuf>,
}

impl Approvers {
    /// The approvers of this user's installation; `None` if there is no directory for keys.
    #[must_use]
    pub fn of_user() -> Option<Self> {
        let named = env::var_os(FILE_VARIABLE).filter(|path| !path.is_empty());
        Some(Self {
            directory: KeyDirectory::of_user()?,
            named: named.map(PathBuf::from),
        })
    }

    /// The approvers whose list and keys are in this directory.
    #[must_use]
    pub const fn in_directory(directory: KeyDirectory) -> Self {
        Self {
            directory,
            named: None,
        }
    }

    /// The file of the list.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        match &self.named {
            Some(path) => path.clone(),
            None => self.directory.path().join(FILE),
        }
    }

    /// The directory of the private keys.
    #[must_use]
    pub const fn directory(&self) -> &KeyDirectory {
        &self.directory
    }

    /// Reads the list. `None` if there is no list yet.
    ///
    /// # Errors
    /// If the list is damaged, of another installation, or can be changed by other users, or if it existed before and is
    /// missing.
    pub fn read(&self) -> Result<Option<ApproverList>, KeyError> {
        if let Some(path) = &self.named {
            let (parent, name) = (path.parent(), path.file_name());
            let directory = KeyDirectory::new(parent.unwrap_or(Path::new("")).to_owned());
            let name = name.unwrap_or_default().to_string_lossy();
            let content = directory.read(&name)?;
            let content = content.ok_or_else(|| self.missing())?;
            // Who names a file trusts the installation that signed it.
            return self.checked(&content, None).map(Some);
        }
        match self.directory.read(FILE)? {
            Some(content) => {
                if !InstallationKey::exists(&self.directory) {
                    return Err(KeyError::ForeignList(self.path().display().to_string()));
                }
                let own = InstallationKey::read_or_create(&self.directory)?;
                self.checked(&content, Some(own.public())).map(Some)
            }
            None if self.directory.read(MADE)?.is_some() => Err(self.missing()),
            None => Ok(None),
        }
    }

    /// Reads the list, and makes it first if there is none: with a key without a passphrase for the user that the
    /// installation belongs to. Returns whether it was made.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn establish(&self, owner: &str, now: i64) -> Result<(ApproverList, bool), KeyError> {
        if let Some(list) = self.read()? {
            return Ok((list, false));
        }
        let _lock = self.directory.lock(LOCK)?;
        if let Some(list) = self.read()? {
            return Ok((list, false));
        }
        if !InstallationKey::exists(&self.directory) {
            // All keys of an installation are made together, so that one that is missing later is noticed.
            JournalKey::of_installation(&self.directory)?;
        }
        let installation = InstallationKey::read_or_create(&self.directory)?;
        // A process that was killed here before may have made the key.
        let key = match ApproverKey::create(&self.directory, owner, None)? {
            Some(key) => Some(key),
            None => ApproverKey::read(&self.directory, owner, None)?,
        };
        let key = key.ok_or_else(|| self.missing())?;
        let list = ApproverList {
            owner: owner.to_owned(),
            since: now,
            installation: installation.public(),
            approvers: vec![Approver {
                name: owner.to_owned(),
                key: Some(key.public()),
                unattended: false,
                added_at: now,
            }],
            delegations: Vec::new(),
        };
        self.write(&list, &installation)?;
        self.directory.create(MADE, b"")?;
        Ok((list, true))
    }

    /// Changes the list. No other process changes it meanwhile.
    ///
    /// # Errors
    /// If the list cannot be read or written, or the change is refused; the list is as it was then.
    pub fn change<T>(
        &self,
        change: impl FnOnce(&mut ApproverList) -> Result<T, KeyError>,
    ) -> Result<(T, ApproverList), KeyError> {
        if let Some(path) = &self.named {
            let message = format!(
                "`{}` names the list of another installation; change it there",
                path.display()
            );
            return Err(KeyError::NotPossible(message));
        }
        let _lock = self.directory.lock(LOCK)?;
        let mut list = self.read()?.ok_or_else(|| self.missing())?;
        let changed = change(&mut list)?;
        let installation = InstallationKey::read_or_create(&self.directory)?;
        self.write(&list, &installation)?;
        Ok((changed, list))
    }

    fn write(&self, list: &ApproverList, installation: &InstallationKey) -> Result<(), KeyError> {
        let text = serde_json::to_string(list)
            .map_err(|error| KeyError::NotPossible(error.to_string()))?;
        let signature = installation.sign(format!("{PURPOSE}{text}").as_bytes());
        let content = format!("{text}\n{}\n", hex::encode(&signature));
        self.directory.replace(FILE, content.as_bytes())
    }

    /// The list in a file, if this key, or else its own, signed it.
    fn checked(&self, content: &[u8], key: Option<PublicKey>) -> Result<ApproverList, KeyError> {
        let damaged = || KeyError::damaged(&self.path());
        let text = std::str::from_utf8(content).map_err(|_| damaged())?;
        let (text, signature) = text.trim_end().split_once('\n').ok_or_else(damaged)?;
        let list: ApproverList = serde_json::from_str(text).map_err(|_| damaged())?;
        let signature: [u8; 64] = hex::decode(signature).ok_or_else(damaged)?;
        let key = key.unwrap_or(list.installation);
        let message = format!("{PURPOSE}{text}");
        let is_own = key == list.installation && key.has_signed(message.as_bytes(), &signature);
        match is_own {
            true => Ok(list),
            false => Err(KeyError::ForeignList(self.path().display().to_string())),
        }
    }

    fn missing(&self) -> KeyError {
        KeyError::Missing(self.path().display().to_string())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn installation() -> (tempfile::TempDir, Approvers) {
        let directory = tempfile::tempdir().unwrap();
        let keys = KeyDirectory::new(directory.path().join("keys"));
        (directory, Approvers::in_directory(keys))
    }

    fn another(name: &str, key: PublicKey) -> Approver {
        Approver {
            name: name.to_owned(),
            key: Some(key),
            unattended: false,
            added_at: 2,
        }
    }

    #[test]
    fn the_first_use_makes_a_key_for_the_owner_once() {
        let (_directory, approvers) = installation();
        assert_eq!(approvers.read().unwrap(), None);
        let (list, is_new) = approvers.establish("ada", 1).unwrap();
        assert!(is_new);
        assert_eq!((list.owner.as_str(), list.since), ("ada", 1));
        let key = ApproverKey::read(approvers.directory(), "ada", None).unwrap();
        assert_eq!(list.find("Ada").unwrap().key, Some(key.unwrap().public()));
        let (again, is_new) = approvers.establish("bob", 2).unwrap();
        assert_eq!((again, is_new), (list.clone(), false));
        assert_eq!(approvers.read().unwrap(), Some(list));
    }

    #[test]
    fn processes_that_start_at_once_make_one_key() {
        let (_directory, approvers) = installation();
        let lists: Vec<ApproverList> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| approvers.establish("ada", 1).unwrap().0))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert!(lists.iter().all(|list| *list == lists[0]));
    }

    #[test]
    fn two_approvers_need_two_names_and_two_keys() {
        let (_directory, approvers) = installation();
        let (list, _) = approvers.establish("ada", 1).unwrap();
        let key = list.approvers[0].key.unwrap();
        let add = |approver: Approver| approvers.change(|list| list.add(approver));
        for (name, word) in [("ADA", "already"), ("bob", "two keys")] {
            let error = add(another(name, key)).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
        let other = ApproverKey::create(approvers.directory(), "bob", None).unwrap();
        add(another("bob", other.unwrap().public())).unwrap();
        let names = |list: &ApproverList| -> Vec<String> {
            let names = list.approvers.iter();
            names.map(|approver| approver.name.clone()).collect()
        };
        assert_eq!(names(&approvers.read().unwrap().unwrap()), ["ada", "bob"]);
        approvers.change(|list| list.remove("Ada")).unwrap();
        let last = approvers.change(|list| list.remove("bob")).unwrap_err();
        assert!(last.to_string().contains("nobody could decide"), "{last}");
        assert_eq!(names(&approvers.read().unwrap().unwrap()), ["bob"]);
    }

    #[test]
    fn a_list_that_was_changed_is_missing_or_is_of_another_installation_is_refused() {
        let (_directory, approvers) = installation();
        approvers.establish("ada", 1).unwrap();
        let (_other_directory, other) = installation();
        other.establish("ada", 1).unwrap();
        let content = fs::read_to_string(approvers.path()).unwrap();
        let changed = content.replace("\"unattended\":false", "\"unattended\":true");
        assert_ne!(changed, content);
        let foreign = fs::read_to_string(other.path()).unwrap();
        for forged in [changed, foreign] {
            fs::write(approvers.path(), forged).unwrap();
            let error = approvers.read().unwrap_err();
            assert!(matches!(error, KeyError::ForeignList(_)), "{error}");
        }
        for damaged in ["", "{}", "{}\n00"] {
            fs::write(approvers.path(), damaged).unwrap();
            let error = approvers.read().unwrap_err();
            assert!(matches!(error, KeyError::Damaged(_)), "{error}");
        }
        fs::write(approvers.path(), &content).unwrap();
        fs::set_permissions(approvers.path(), Permissions::from_mode(0o666)).unwrap();
        let error = approvers.read().unwrap_err();
        assert!(matches!(error, KeyError::NotPrivate(_)), "{error}");
        // A lost list is not replaced by one with another key.
        fs::remove_file(approvers.path()).unwrap();
        for result in [
            approvers.read().map(drop),
            approvers.establish("ada", 3).map(drop),
        ] {
            let error = result.unwrap_err();
            assert!(matches!(error, KeyError::Missing(_)), "{error}");
        }
    }

    #[test]
    fn a_process_that_was_killed_before_the_list_was_written_leaves_nothing_to_repair() {
        let (_directory, approvers) = installation();
        let key = ApproverKey::create(approvers.directory(), "ada", None).unwrap();
        let (list, is_new) = approvers.establish("ada", 1).unwrap();
        assert!(is_new);
        assert_eq!(list.approvers[0].key, Some(key.unwrap().public()));
    }

    #[test]
    fn a_list_without_the_key_that_signed_it_is_refused() {
        let (_directory, approvers) = installation();
        approvers.establish("ada", 1).unwrap();
        fs::remove_file(approvers.directory().path().join("installation.key")).unwrap();
        let error = approvers.read().unwrap_err();
        assert!(matches!(error, KeyError::ForeignList(_)), "{error}");
    }

    #[test]
    fn a_delegation_counts_until_its_date_and_only_with_the_signature_of_its_author() {
        let (_directory, approvers) = installation();
        approvers.establish("ada", 1).unwrap();
        let ada = ApproverKey::read(approvers.directory(), "ada", None)
            .unwrap()
            .unwrap();
        let bob = ApproverKey::create(approvers.directory(), "bob", None)
            .unwrap()
            .unwrap();
        let delegation = Delegation::sign(&ada, "bob", 20, 10);
        let (_, list) = approvers
            .change(|list| {
                list.add(another("bob", bob.public()))?;
                list.delegations.push(delegation);
                Ok(())
            })
            .unwrap();
        let counts = |list: &ApproverList, at| list.may_decide_for("Bob", "ada", at);
        assert_eq!(
            [9, 10, 19, 20].map(|at| counts(&list, at)),
            [false, true, true, false]
        );
        assert!(!list.may_decide_for("ada", "bob", 15));
        let mut longer = list.clone();
        longer.delegations[0].until = 30;
        assert!(!counts(&longer, 15), "its author signed another date");
        let mut by_bob = list.clone();
        by_bob.delegations[0] = Delegation {
            from: "ada".to_owned(),
            ..Delegation::sign(&bob, "bob", 20, 10)
        };
        assert!(!counts(&by_bob, 15));
        let (_, list) = approvers.change(|list| list.remove("bob")).unwrap();
        assert!(list.delegations.is_empty());
    }
}
