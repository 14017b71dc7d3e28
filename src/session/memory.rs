//! How much memory is there for a run.

use std::path::Path;

/// Bytes that this process may still take: what the machine has available, or less where a limit of the process or
/// of its group of processes is lower. `None` where the system does not say.
pub(super) fn available() -> Option<u64> {
    let machine = read("/proc/meminfo").and_then(|text| kib(&text, "MemAvailable:"));
    let group = Path::new("/sys/fs/cgroup");
    let number = |name: &str| std::fs::read_to_string(group.join(name)).ok()?.trim().parse().ok();
    let of_group = || Some(left(number("memory.max")?, number("memory.current")?));
    let of_process = || {
        let most = address_space(&read("/proc/self/limits")?)?;
        Some(left(most, kib(&read("/proc/self/status")?, "VmSize:")?))
    };
    [machine, of_group(), of_process()].into_iter().flatten().min()
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

fn left(most: u64, taken: u64) -> u64 {
    most.saturating_sub(taken)
}

/// The bytes of a line such as `MemAvailable:   1234 kB`.
fn kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.strip_prefix(name))?;
    let number: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(number << 10)
}

/// The limit of the address space in a table of limits; `None` where there is none.
fn address_space(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|l| l.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_the_system_are_read() {
        let text = "MemTotal:       24684000 kB\nMemAvailable:   17631232 kB\n";
        assert_eq!(kib(text, "MemAvailable:"), Some(17_631_232 << 10));
        assert_eq!(kib(text, "VmSize:"), None);
        let limited = "Max address space         1073741824           unlimited            bytes";
        assert_eq!(address_space(limited), Some(1 << 30));
        let unlimited = "Max address space         unlimited            unlimited            bytes";
        assert_eq!(address_space(unlimited), None);
        if cfg!(target_os = "linux") {
            assert!(available().is_some_and(|bytes| bytes > 0));
        }
    }
}
