import json
import os
import subprocess
import sys
import tempfile
import unittest

HARNESS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = """
import json, sys
sys.path.append(sys.argv[1])
from sandglass_harness.script import installed
before = list(sys.path)
print(json.dumps([installed.find_directories(), sys.path == before, sys.prefix]))
"""


class InstalledTest(unittest.TestCase):
    def told_by(self, python, *flags):
        command = [python, *flags, "-c", PROGRAM, HARNESS]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    def test_it_is_what_site_would_add_and_nothing_is_added_or_run(self):
        command = [sys.executable, "-I", "-c", "import json, site; print(json.dumps(site.getsitepackages()))"]
        known = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        directories, is_unchanged, _ = self.told_by(sys.executable, "-I", "-S", "-B")
        self.assertEqual(directories, [path for path in known if os.path.isdir(path)])
        self.assertTrue(is_unchanged)

    def test_in_a_virtual_environment_it_is_the_environment_s(self):
        with tempfile.TemporaryDirectory() as place:
            home = os.path.dirname(os.path.realpath(sys.executable))
            lib = os.path.join(place, "lib", "python%d.%d" % sys.version_info[:2], "site-packages")
            os.makedirs(lib)
            os.mkdir(os.path.join(place, "bin"))
            python = os.path.join(place, "bin", "python3")
            os.symlink(os.path.realpath(sys.executable), python)
            with open(os.path.join(place, "pyvenv.cfg"), "w") as file:
                file.write(f"home = {home}\ninclude-system-site-packages = false\n")
            with open(os.path.join(lib, "evil.pth"), "w") as file:
                file.write("import sys; sys.path.append('/evil')\n")
            directories, is_unchanged, prefix = self.told_by(python, "-I", "-S", "-B")
            self.assertEqual((directories, is_unchanged, prefix), ([lib], True, place))


if __name__ == "__main__":
    unittest.main()
