import errno
import unittest

from sandglass_harness.script import seccomp

ALLOW, KILL, SUCCESS = 0x7FFF0000, 0x80000000, 0x00050000
EPERM, ENOSYS, EAFNOSUPPORT, EPROTONOSUPPORT, ESOCKTNOSUPPORT, ENOMEM, EINVAL = (
    0x00050000 | getattr(errno, name)
    for name in "EPERM ENOSYS EAFNOSUPPORT EPROTONOSUPPORT ESOCKTNOSUPPORT ENOMEM EINVAL".split()
)
X86, ARM = seccomp.AUDIT_ARCH["x86_64"], seccomp.AUDIT_ARCH["aarch64"]
I386, ARM32 = 0x40000003, 0x40000028
BIG = 0xFFFFFFFF_00000000


def verdict(program, arch, number, *args):
    """Returns the kernel's answer to a call: an interpreter of the few instructions that are used."""
    words = {0: number & 0xFFFFFFFF, 4: arch, 8: 0, 12: 0}
    for n, value in enumerate((*args, *[0] * (6 - len(args)))):
        words[16 + 8 * n] = value & 0xFFFFFFFF
        words[20 + 8 * n] = value >> 32 & 0xFFFFFFFF
    accumulator = at = 0
    for _ in range(len(program)):
        code, if_true, if_false, constant = program[at]
        at += 1
        if code == 0x20:  # LD [k]
            accumulator = words[constant]
        elif code == 0x54:  # AND k
            accumulator &= constant
        elif code == 0x06:  # RET k
            return constant
        else:
            holds = {
                0x15: accumulator == constant,
                0x35: accumulator >= constant,
                0x45: bool(accumulator & constant),
            }[code]
            at += if_true if holds else if_false
    raise AssertionError("the program does not end")


class SeccompTest(unittest.TestCase):
    maxDiff = None
    MACHINES = (("x86_64", X86), ("aarch64", ARM))

    def each(self):
        for machine, arch in self.MACHINES:
            yield machine, arch, seccomp.build(machine), seccomp.NUMBERS[machine]

    def test_every_instruction_is_well_formed_and_no_jump_leaves_the_program(self):
        for machine, _, program, _ in self.each():
            with self.subTest(machine):
                self.assertLess(len(program), 4096)
                self.assertEqual(program[-1], (0x06, 0, 0, ALLOW))
                for at, (code, if_true, if_false, constant) in enumerate(program):
                    self.assertIn(code, (0x20, 0x54, 0x06, 0x15, 0x35, 0x45))
                    self.assertTrue(0 <= constant < 1 << 32)
                    jumps = (if_true, if_false) if code & 7 == 5 else ()
                    self.assertTrue(all(0 <= j < 256 and at + 1 + j < len(program) for j in jumps))

    def test_a_foreign_architecture_is_killed(self):
        for machine, arch, program, _ in self.each():
            for other in (X86, ARM, I386, ARM32, 0, 0xFFFFFFFF):
                with self.subTest(machine=machine, arch=hex(other)):
                    self.assertEqual(verdict(program, other, 0) == KILL, other != arch)

    def test_x32_is_killed_on_x86_64(self):
        program = seccomp.build("x86_64")
        for number in (0x40000000, 0x40000000 + 59, 0x7FFFFFFF, 0xFFFFFFFF):
            with self.subTest(hex(number)):
                self.assertEqual(verdict(program, X86, number), KILL)

    def test_every_refused_call_is_refused_whatever_its_arguments_are(self):
        for machine, arch, program, numbers in self.each():
            for name in seccomp.REFUSED:
                if name not in numbers:
                    continue
                for args in ((), (1, 2, 3, 4, 5, 6), (BIG,) * 6, ((1 << 64) - 1,) * 6):
                    with self.subTest(machine=machine, call=name, args=args):
                        self.assertEqual(verdict(program, arch, numbers[name], *args), EPERM)

    def test_every_number_that_is_not_named_is_allowed(self):
        for machine, arch, program, numbers in self.each():
            named = set(numbers.values())
            refused = [n for n in range(600) if n not in named and verdict(program, arch, n, 1, 2, 3, 4, 5, 6) != ALLOW]
            self.assertEqual(refused, [], machine)

    def test_every_name_has_a_rule_and_every_rule_a_number_somewhere(self):
        ruled = {*seccomp.REFUSED, *seccomp.OWN_PID_ONLY, "clone3", "clone", "socket", "prlimit64", "setpriority"}
        ruled |= {"pidfd_send_signal", "ioprio_set", "ioctl", "socketpair", "setsockopt", "fcntl", "mmap", "memfd_create", "seccomp", "prctl", *seccomp.NOT_THE_BROKER}
        named = set(seccomp.NUMBERS["x86_64"]) | set(seccomp.NUMBERS["aarch64"])
        self.assertEqual((named - ruled, ruled - named), (set(), set()))

    def test_socketpair_makes_unix_sockets_only(self):
        for machine, arch, program, numbers in self.each():
            for family in range(50):
                expected = ALLOW if family == 1 else EAFNOSUPPORT
                with self.subTest(machine=machine, family=family):
                    self.assertEqual(verdict(program, arch, numbers["socketpair"], family, 1, 0, 0), expected)

    def test_options_whose_effect_outlives_the_socket_or_reaches_the_machine_are_refused(self):
        refused = {1: (26, 50, 51, 52), 0: (35, 39, 42, 46), 41: (20, 27, 32, 42, 46), 6: (14, 31, 32, 38)}
        for machine, arch, program, numbers in self.each():
            for level in (0, 1, 6, 17, 41, 0xFFFFFFFF):
                for option in (*range(80), BIG | 26, BIG | 20):
                    expected = EPERM if option & 0xFFFFFFFF in refused.get(level, ()) else ALLOW
                    if (level, option) == (1, 13):  # SO_LINGER
                        expected = SUCCESS
                    with self.subTest(machine=machine, level=level, option=option):
                        self.assertEqual(verdict(program, arch, numbers["setsockopt"], 3, level, option, 0, 32), expected)

    def test_only_calls_that_aarch64_never_had_lack_a_number_there(self):
        missing = set(seccomp.NUMBERS["x86_64"]) - set(seccomp.NUMBERS["aarch64"])
        self.assertEqual(missing, {"iopl", "ioperm", "modify_ldt"})
        self.assertEqual(set(seccomp.NUMBERS["aarch64"]) - set(seccomp.NUMBERS["x86_64"]), set())

    def test_no_number_is_given_twice(self):
        for machine, _, _, numbers in self.each():
            self.assertEqual(len(set(numbers.values())), len(numbers), machine)

    def test_what_must_stay_allowed_is_allowed(self):
        """Calls that Python and its libraries need, by their numbers on x86_64 and aarch64."""
        names = {
            "read": (0, 63), "futex": (202, 98), "memfd_create": (319, 279), "inotify_init1": (294, 26),
            "pidfd_open": (434, 434), "sched_getaffinity": (204, 123), "sched_getscheduler": (145, 120),
            "mbind": (237, 235), "close_range": (436, 436), "openat2": (437, 437), "epoll_pwait2": (441, 441),
            "kill": (62, 129), "execve": (59, 221), "setrlimit": (160, 164), "seccomp": (317, 277), "getpriority": (140, 141),
        }  # fmt: skip
        for name, by_machine in names.items():
            for (machine, arch, program, _), number in zip(self.each(), by_machine):
                with self.subTest(machine=machine, call=name):
                    self.assertEqual(verdict(program, arch, number, 7, 2, 3, 4, 5, 6), ALLOW)

    def check(self, name, rows):
        for machine, arch, program, numbers in self.each():
            for args, want in rows:
                with self.subTest(machine=machine, call=name, args=[hex(a) for a in args]):
                    self.assertEqual(verdict(program, arch, numbers[name], *args), want)

    def test_clone3_is_missing_so_that_clone_takes_its_place(self):
        self.check("clone3", [((), ENOSYS), ((1, 2), ENOSYS)])

    def test_clone_makes_processes_and_threads_but_no_namespace(self):
        thread = 0x3D0F00
        namespaces = (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
        rows = [((17,), ALLOW), ((thread,), ALLOW), ((0x01200011,), ALLOW), ((0,), ALLOW)]
        rows += [((17 | flag,), EPERM) for flag in namespaces]
        rows += [((thread | 0x10000000 | 0x40000000,), EPERM)]
        self.check("clone", rows)

    def test_sockets_of_families_that_a_network_namespace_confines(self):
        rows = [((family, 1, 0), ALLOW) for family in (1, 2, 10)]
        rows += [((family, 1, 0), EAFNOSUPPORT) for family in (0, 3, 9, 11, 16, 17, 38, 40, 44, 0xFFFFFFFF)]
        # The kernel takes an int: what is in the upper half changes nothing.
        rows += [((BIG | 2, 1, 0), ALLOW), ((BIG | 40, 1, 0), EAFNOSUPPORT)]
        self.check("socket", rows)

    def test_sockets_of_protocols_that_load_no_module(self):
        flags = (0, 0x800, 0x80000, 0x80800, BIG)
        for family, icmp in ((2, 1), (10, 58)):
            fitting = {1: (0, 6, BIG), 2: (0, 17, icmp, BIG | 17)}
            for kind, protocols in fitting.items():
                others = {1, 6, 17, 33, 58, 115, 132, 136, 255, 256, 262, BIG | 132} - set(protocols)
                rows = [((family, kind | flag, protocol), ALLOW) for flag in flags for protocol in protocols]
                self.check("socket", rows + [((family, kind, protocol), EPROTONOSUPPORT) for protocol in others])

    def test_sockets_of_types_that_load_no_module(self):
        for family in (2, 10):
            rows = [((family, 3 | flag, protocol), EPERM) for flag in (0, 0x80000, BIG) for protocol in (0, 1, 255)]
            kinds = (0, *range(4, 16), 0x80006, BIG | 10)
            self.check("socket", rows + [((family, kind, 0), ESOCKTNOSUPPORT) for kind in kinds])
        self.check("socket", [((1, kind, 0), ALLOW) for kind in (1, 2, 3, 5)])

    def test_no_ioctl_loads_a_module(self):
        loading = (0x5423, 0x8940, 0x8941, 0x89A0, 0x89A1, 0x8982, 0x8983, 0x8980, 0x8981, BIG | 0x8982)
        rows = [((3, command, 0x7F00), EPERM) for command in loading]
        # TIOCGETD, SIOCGIFCONF, SIOCGIFHWADDR, SIOCETHTOOL
        self.check("ioctl", [*rows, *(((3, command, 0x7F00), ALLOW) for command in (0x5424, 0x8912, 0x8927, 0x8946))])

    def test_no_huge_page_is_mapped(self):
        rows = [((0, 4096, 3, 0x22, -1, 0), ALLOW), ((0, 4096, 3, BIG | 0x22), ALLOW)]
        rows += [((0, 2 << 20, 3, flags), ENOMEM) for flags in (0x40022, 0x40000 | 30 << 26, BIG | 0x40022)]
        self.check("mmap", rows)
        self.check("memfd_create", [((1, 0), ALLOW), ((1, 3), ALLOW), ((1, 4), ENOMEM), ((1, 4 | 21 << 26), ENOMEM)])

    def test_no_further_filter_is_loaded(self):
        rows = [((1, 0, 0x7F00), EINVAL), ((1, 8, 0x7F00), EINVAL), ((BIG | 1, 0, 0x7F00), EINVAL)]
        self.check("seccomp", [*rows, ((0, 0, 0), ALLOW), ((2, 0, 0x7F00), ALLOW), ((3, 0, 0x7F00), ALLOW)])
        rows = [((22, 2, 0x7F00), EINVAL), ((BIG | 22, 2, 0x7F00), EINVAL)]
        self.check("prctl", [*rows, ((22, 1), ALLOW), ((22, 0), ALLOW), ((21,), ALLOW), ((38, 2), ALLOW), ((2, 22), ALLOW)])

    def test_no_hint_about_writes_stays_with_an_inode(self):
        rows = [((3, 1036, 1), EPERM), ((3, 1038, 1), EPERM), ((3, BIG | 1036, 1), EPERM)]
        self.check("fcntl", [*rows, ((3, 1035, 1), ALLOW), ((3, 1037, 1), ALLOW)])

    def test_scheduling_of_oneself_only(self):
        for name in seccomp.OWN_PID_ONLY:
            self.check(name, [((0, 8, 4096), ALLOW), ((1, 8, 4096), EPERM), ((2,), EPERM), ((0xFFFFFFFF,), EPERM)])

    def test_limits_of_others_are_read_and_not_set(self):
        rows = [
            ((0, 7, 0x7F00, 0), ALLOW),
            ((0, 7, 0, 0x7F00), ALLOW),
            ((1, 7, 0, 0x7F00), ALLOW),
            ((1, 7, 0x7F00, 0), EPERM),
            ((2, 7, 0x7F00, 0x7F00), EPERM),
            ((1, 7, BIG, 0), EPERM),  # a pointer whose lower half is zero
            ((1, 7, 1, 0), EPERM),
            ((0xFFFFFFFF, 7, 1, 0), EPERM),
        ]
        self.check("prlimit64", rows)

    def test_niceness_of_oneself_only(self):
        rows = [((0, 0, 5), ALLOW), ((0, 1, 5), EPERM), ((1, 0, 5), EPERM), ((2, 0, 5), EPERM), ((2, 1000, 5), EPERM)]
        self.check("setpriority", rows)

    def test_io_priority_of_oneself_only(self):
        rows = [((1, 0, 5), ALLOW), ((1, 1, 5), EPERM), ((2, 0, 5), EPERM), ((3, 0, 5), EPERM), ((0, 0, 5), EPERM)]
        self.check("ioprio_set", rows)

    def test_no_signal_reaches_the_broker(self):
        for name in seccomp.NOT_THE_BROKER:
            rows = [((1, 9), EPERM), ((BIG | 1, 9), EPERM), ((7, 9), ALLOW), ((0, 9), ALLOW), ((0xFFFFFFFF, 9), ALLOW)]
            self.check(name, rows)

    def test_where_activities_are_not_apart_no_signal_reaches_the_zygote_or_all(self):
        for machine, arch in self.MACHINES:
            program, numbers = seccomp.build(machine, 2), seccomp.NUMBERS[machine]
            for name in seccomp.NOT_THE_BROKER:
                for pid, expected in ((1, EPERM), (2, EPERM), (BIG | 2, EPERM), (3, ALLOW), (0, ALLOW), (0xFFFFFFFE, ALLOW)):
                    with self.subTest(machine=machine, call=name, pid=pid):
                        self.assertEqual(verdict(program, arch, numbers[name], pid, 9), expected)
            self.assertEqual(verdict(program, arch, numbers["kill"], 0xFFFFFFFF, 9), EPERM)
            self.assertEqual(verdict(program, arch, numbers["pidfd_send_signal"], 5, 9), EPERM)
            for command, owner, expected in ((8, 2, EPERM), (8, 3, ALLOW), (15, 0, EPERM), (1036, 0, EPERM), (3, 2, ALLOW)):
                self.assertEqual(verdict(program, arch, numbers["fcntl"], 3, command, owner), expected)

    def test_no_descriptor_sends_signals_to_the_broker(self):
        rows = [((3, 8, 1), EPERM), ((3, 8, BIG | 1), EPERM), ((3, 8, 0xFFFFFFFF), EPERM), ((3, 15, 0x7F00), EPERM)]
        rows += [((3, 8, 7), ALLOW), ((3, 8, 0xFFFFFFF9), ALLOW), ((1, 1, 1), ALLOW), ((3, 1030, 1), ALLOW)]
        self.check("fcntl", rows)
        self.check("ioctl", [((3, 0x8901, 0x7F00), EPERM), ((3, 0x8902, 0x7F00), EPERM), ((3, 0x8903), ALLOW)])

    def test_nothing_is_typed_into_a_terminal(self):
        rows = [((0, 0x5412), EPERM), ((0, 0x541C), EPERM), ((0, 0x5401), ALLOW), ((0, 0x541B), ALLOW)]
        rows += [((0x5412, 0x5401), ALLOW), ((0, BIG | 0x5412), EPERM)]
        self.check("ioctl", rows)

    def test_other_machines_have_no_filter(self):
        with self.assertRaises(KeyError):
            seccomp.build("riscv64")
