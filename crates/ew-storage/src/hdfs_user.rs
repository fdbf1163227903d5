//! As whom HDFS is asked.

use crate::client_error::ClientError;
use std::fs;
use std::os::unix::fs::MetadataExt;

/// The user of Hadoop's own clients: `HADOOP_USER_NAME`, else this process's in /etc/passwd.
/// Without the C library, whose user database a static binary cannot ask.
///
/// # Errors
/// [`ClientError`], when there is none.
pub(crate) fn hdfs_user() -> Result<String, ClientError> {
    if let Ok(name) = std::env::var("HADOOP_USER_NAME") {
        return Ok(name);
    }
    let own = fs::metadata("/proc/self").map_err(ClientError::OwnUser)?;
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let id = own.uid();
    name_of(&users, id).ok_or(ClientError::NoUserName { id })
}

fn name_of(users: &str, uid: u32) -> Option<String> {
    let number = uid.to_string();
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == number).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_number() {
        let users = "root:x:0:0:root:/root:/bin/sh\nhdfs:x:991:988::/:/bin/false\nbroken\n";
        assert_eq!(name_of(users, 991).as_deref(), Some("hdfs"));
        assert_eq!(name_of(users, 988), None);
    }
}
