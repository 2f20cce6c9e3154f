import unittest

from sandglass_harness.broker.session_files import MAX_CHANGED, NO_CELL, SessionFiles

STATE = [3, 4, 4, 1 << 60]


class Workspace:
    """The activities with processes of a workspace, and how many have begun."""

    def __init__(self):
        self.begun, self.present = 2, []

    def count_begun(self):
        return self.begun

    def runs_only(self, activities):
        return all(each in activities for each in self.present)


class SessionFilesTest(unittest.TestCase):
    def setUp(self):
        self.workspace, self.cell = Workspace(), "cell"
        self.workspace.present = [self, self.cell]  # this test plays the session
        self.files = SessionFiles(self)
        self.files.begin_cell()

    def test_what_a_cell_appended_is_removed_if_nothing_else_ran(self):
        self.assertEqual(self.files.before_cell(), {"changed": [], "removes": True})
        self.files.take([STATE])
        self.assertEqual(self.files.before_cell(), {"changed": [STATE], "removes": True})
        self.files.begin_cell()
        self.assertEqual(self.files.before_cell(), {"changed": [], "removes": True})

    def test_it_stays_if_another_activity_ran_at_any_moment_of_the_cell(self):
        stays = {"changed": [], "removes": False}
        self.workspace.begun += 1  # and has ended
        self.assertEqual(self.files.before_cell(), stays)
        self.files.begin_cell()
        self.workspace.present.append("program")
        self.assertEqual(self.files.before_cell(), stays)
        self.files.begin_cell()
        self.workspace.present.pop()
        self.assertEqual(self.files.before_cell(), stays)

    def test_only_the_first_message_of_a_cell_counts(self):
        self.assertIs(self.files.take([STATE]), True)
        self.assertIs(self.files.take(None), False)
        self.assertEqual(self.files.before_cell(), {"changed": [STATE], "removes": True})
        self.files.begin_cell()
        self.assertIs(self.files.take([STATE]), True)

    def test_states_of_the_wrong_form_remove_nothing(self):
        for claimed in (None, {}, [1], [STATE[:3]], [[*STATE, 1]], [[3, 4, True, 1]], [[3, 4, 1 << 63, 1]], [["3", 4, 4, 1]], [STATE] * (MAX_CHANGED + 1)):
            with self.subTest(claimed):
                self.files.begin_cell()
                self.files.take(claimed)
                self.assertEqual(self.files.before_cell(), NO_CELL)


if __name__ == "__main__":
    unittest.main()
