import os

from .run_case import RunTestCase, line


class DisplaysTest(RunTestCase):
    """Displays that the broker takes from a script's process."""

    def display(self, **frame):
        return line(**{"type": "display", "kind": "display", "data": {"text/plain": "x"}, "left_out": [], **frame})

    def test_a_display_goes_on_with_its_place_in_stdout(self):
        run = self.make()
        read, write = os.pipe()
        os.set_blocking(read, False)
        self.addCleanup(os.close, read)
        run.streams[0].fd = read
        os.write(write, b"before\n")
        os.close(write)
        run.take_frames(self.display(left_out=["image/png"], after={"stdout": 99}, extra=1), 101.0)
        want = {"type": "display", "execution_id": "e1", "kind": "display", "data": {"text/plain": "x"}}
        want.update(left_out=["image/png"], after={"stdout": 7})
        self.assertEqual(self.outbox.frames, [{"type": "stdout", "execution_id": "e1", "text": "before\n"}, want])
        self.assertEqual(run.sent, 7)  # it does not count as output

    def test_what_is_no_display_is_charged_as_junk(self):
        wrong = [
            {"kind": "other"},
            {"kind": ["display"]},
            {"data": []},
            {"data": {}},
            {"data": {"text/plain": 5}},
            {"data": {"plain": "x"}},
            {"data": {"text/plain; charset=utf-8": "x"}},
            {"data": {"Text/Plain": "x"}},
            {"data": {f"text/{'x' * 100}": "x"}},
            {"data": {f"text/x{n}": "x" for n in range(17)}},
            {"left_out": "image/png"},
            {"left_out": ["image"]},
            {"left_out": ["'é'"]},
            {"left_out": ["'" + "x" * 100]},
            {"left_out": ["'a\n'"]},
            {"left_out": ["a/b"] * 17},
        ]
        for frame in wrong:
            with self.subTest(frame):
                self.assertEqual(self.take(self.display(**frame)), [])
                self.assertGreater(self.run_.sent, 100)

    def test_too_many_and_too_large_displays_are_left_out_with_a_warning(self):
        self.assertEqual(len(self.take(self.display() * 150)), 100)
        self.assertIn("at most 100 displays and 16 MiB", self.run_.displays.warnings[0]["message"])
        large = b'{"type":"display","data":{"text/html":"' + b"x" * (5 << 20)
        self.assertEqual(self.take(large[: 4 << 20], max_output=1 << 16), [])
        self.assertFalse(self.run_.over)  # its end may come
        self.assertEqual(self.take(large, max_output=1 << 16), [])
        self.assertTrue(self.run_.over)
        self.assertEqual(len(self.take(self.display(data={"text/html": "x" * (3 << 20)}) * 9, max_output=64 << 20)), 5)
        self.assertEqual(self.run_.displays.warnings[0]["code"], "displays_left_out")
        self.take(self.display())
        self.assertEqual(self.run_.displays.warnings, [])

    def test_a_script_can_tell_that_it_left_some_out(self):
        self.take(line(type="displays_over"))
        self.assertEqual(len(self.run_.displays.warnings), 1)
