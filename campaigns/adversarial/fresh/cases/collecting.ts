import assert from 'node:assert/strict'
import { type FreshCase, LINUX } from '../fresh-case.ts'

/** Attacks on the collection of files. */
export const COLLECTING: readonly FreshCase[] = [
  {
    id: 'LOAD-12',
    claim: 'nothing on the host opens or unpacks them',
    title: 'offers links, pipes, sockets, a sparse terabyte, and locked, odd and escaping names for collection',
    engines: LINUX,
    options: { collect: ['out/**'] },
    script: String.raw`
os.mkdir("out")
os.chdir("out")
os.symlink("/etc/passwd", "link")
os.symlink("/proc/1/environ", "broker")
os.symlink("/", "root")
os.symlink("../..", "up")
os.symlink("loop", "loop")
os.mkfifo("pipe")
socket.socket(socket.AF_UNIX).bind("socket")
with open("sparse", "w") as file:
    file.truncate(1 << 40) if tried(file.truncate, 1 << 40) == "done" else None
open("locked", "w").write("x")
os.chmod("locked", 0)
open("plain", "w").write("x")
os.link("plain", "hard")
os.mkdir("dir")
os.mkdir("dir/shut")
open("dir/shut/f", "w").write("x")
os.chmod("dir/shut", 0)
open("..\\..\\up", "w").write("x")
open("C:nul", "w").write("x")
open(b"\xff", "w").write("x")
emit_result("left")
`,
    expected: { status: 'completed', data: 'left', warnings: ['collect_skipped'] },
    host: ({ first }) => {
      const texts = (first.result?.files ?? []).map(({ path, content }) => [path, Buffer.from(content).toString()])
      assert.deepEqual(
        texts.filter(([, text]) => text !== 'x'),
        [],
      )
      assert.deepEqual(
        texts
          .map(([path]) => path)
          .filter((path) => !/^out\/[^/]/.test(path ?? '') || /(^|\/)\.\.(\/|$)/.test(path ?? '')),
        [],
      )
      assert.ok(texts.some(([path]) => path === 'out/plain'))
    },
  },
  {
    id: 'LOAD-13',
    claim: 'nothing on the host opens or unpacks them',
    title: 'renames files during collection: each collected file is complete and regular',
    engines: LINUX,
    options: { collect: ['out/**'] },
    script: String.raw`
os.mkdir("out")
open("out/a", "w").write("x")
if os.fork() == 0:
    os.setsid()
    while True:
        tried(os.symlink, "/etc/passwd", "out/tmp")
        tried(os.rename, "out/tmp", "out/a")
        with open("out/tmp", "w") as file:
            file.write("x")
        tried(os.rename, "out/tmp", "out/a")
time.sleep(0.1)
emit_result("raced")
`,
    expected: { status: 'completed', data: 'raced' },
    host: ({ first }) =>
      assert.deepEqual(
        (first.result?.files ?? []).filter(({ content }) => !['', 'x'].includes(Buffer.from(content).toString())),
        [],
      ),
  },
]
