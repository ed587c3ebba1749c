//! Data of the person at this machine in a text that others will read.

/// The person at this machine, whose data is in no lesson.
#[derive(Debug, Clone, Default)]
pub struct Person {
    /// Home directory.
    pub home: String,
    /// Login.
    pub login: String,
}

impl Person {
    /// Returns the part of a text that names the person: a home directory, a mail address, the login
    /// beside a path.
    pub fn named_in(&self, text: &str) -> Option<String> {
        if self.home.len() > 2 && text.contains(&self.home) {
            return Some(self.home.clone());
        }
        for root in ["/home/", "/Users/", "\\Users\\"] {
            let Some(at) = text.find(root) else { continue };
            let name: String = text[at + root.len()..]
                .chars()
                .take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
                .collect();
            if !name.is_empty() {
                return Some(format!("{root}{name}"));
            }
        }
        let words = text.split(|c: char| c.is_whitespace() || "<>()\"'`,;".contains(c));
        for word in words {
            let word = word.trim_matches(['.', ':']);
            let is_mail = word.split_once('@').is_some_and(|(name, host)| {
                let is_name = |c: char| c.is_alphanumeric() || "._+-".contains(c);
                !name.is_empty()
                    && name.chars().all(is_name)
                    && host.contains('.')
                    && host.split('.').next_back().is_some_and(|end| {
                        end.len() > 1 && end.chars().all(|c| c.is_ascii_alphabetic())
                    })
                    && host
                        .chars()
                        .all(|c| c.is_alphanumeric() || c == '.' || c == '-')
            });
            // `git@host.example:…` is an address of a service.
            if is_mail && !word.starts_with("git@") {
                return Some(word.to_owned());
            }
        }
        let login = &self.login;
        let is_login = |part: &str| part == login;
        let beside = |sign: char| {
            login.len() > 2
                && text.contains(sign)
                && text
                    .split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.')))
                    .any(is_login)
                && (text.contains(&format!("{sign}{login}"))
                    || text.contains(&format!("{login}{sign}")))
        };
        ['\\', '@', '~']
            .into_iter()
            .any(beside)
            .then(|| login.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn homes_addresses_and_logins_are_found() {
        let person = Person {
            home: "/srv/people/mara".to_owned(),
            login: "mara".to_owned(),
        };
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(person.named_in(text).as_deref(), expected, "{text}");
        };
        check("Read /srv/people/mara/x.", Some("/srv/people/mara"));
        check("Read /home/somebody/x.", Some("/home/somebody"));
        check("Open C:\\Users\\Mara\\x.", Some("\\Users\\Mara"));
        check("Ask mara.b@example.com.", Some("mara.b@example.com"));
        check("ssh mara@host", Some("mara"));
        check("git clone git@example.com:a/b.git", None);
        check("Use the package @scope/name@1.2.3.", None);
        check("The fixture maralee is in /home/<user>/x.", None);
        check("Use decorators such as @pytest.fixture.", None);
    }
}
