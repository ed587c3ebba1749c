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
            // `git@host.example:…` is an address of a service.
            if is_mail(word) && !word.starts_with("git@") {
                return Some(word.to_owned());
            }
        }
        let login = &self.login;
        let beside = |sign: char| {
            text.contains(&format!("{sign}{login}")) || text.contains(&format!("{login}{sign}"))
        };
        let mut words = text.split(|c: char| !(c.is_alphanumeric() || "_-.".contains(c)));
        let is_named = login.len() > 2
            && words.any(|word| word == login)
            && ['\\', '@', '~'].into_iter().any(beside);
        is_named.then(|| login.clone())
    }
}

fn is_mail(word: &str) -> bool {
    let Some((name, host)) = word.split_once('@') else {
        return false;
    };
    let is_name = |c: char| c.is_alphanumeric() || "._+-".contains(c);
    let is_host = |c: char| c.is_alphanumeric() || ".-".contains(c);
    let end = host.rsplit_once('.').map_or("", |(_, end)| end);
    !name.is_empty()
        && name.chars().all(is_name)
        && host.chars().all(is_host)
        && end.len() > 1
        && end.chars().all(|c| c.is_ascii_alphabetic())
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
