import { expect, test } from 'vitest'
import type { Workspace } from '../../src/index.ts'

/** A cell that ends the process of the session. */
const CRASH = 'import os; os._exit(1)'
const PRCTL = 'import ctypes\nlibc, found = ctypes.CDLL(None), ctypes.c_int()'
const NO_CHILD = `import os
try: os.wait()
except ChildProcessError: pass
else: raise SystemError('a child that no cell has started')`

/** The copies of sessions whose cells change what a fork needs. @param workspace gives an open workspace. */
export function describeCopies(workspace: () => Workspace): void {
  test.for([
    [
      'ignores its ended children',
      'import signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)',
      'signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN',
    ],
    [
      'handles its ended children',
      'import signal\nheard = []\ndef hear(*_): heard.append(1)\nsignal.signal(signal.SIGCHLD, hear)',
      'signal.getsignal(signal.SIGCHLD) == hear and not heard',
    ],
    [
      'ignores its ended children in C',
      `${PRCTL}\nimport signal\nlibc.signal.restype = ctypes.c_void_p\nlibc.signal(signal.SIGCHLD, ctypes.c_void_p(1))`,
      'libc.signal(signal.SIGCHLD, ctypes.c_void_p(1)) == 1',
    ],
    [
      'adopts orphans',
      `${PRCTL}\nlibc.prctl(36, 1, 0, 0, 0)`,
      'libc.prctl(37, ctypes.byref(found), 0, 0, 0) == 0 and found.value == 1',
    ],
    [
      'hides from the other processes of its user',
      `${PRCTL}\nlibc.prctl(4, 0, 0, 0, 0)`,
      'libc.prctl(3, 0, 0, 0, 0) == 0',
    ],
  ] as const)('a session that %s is copied and rolled back as any other, and stays so', async ([, change, isSo]) => {
    await using session = await workspace().session()
    await session.run(`x = 1\n${change}`)
    const check = `${NO_CHILD}\n[x, bool(${isSo})]`
    expect(await session.run(`x = 2\n${check}`)).toMatchObject({ error: null, value: [2, true], stderr: '' })
    const checkpoint = await session.checkpoint()
    expect(checkpoint).toMatchObject({ grade: 'whole' })
    expect(await session.run(`x = 3\n${CRASH}`)).toMatchObject({ state: 'rolled-back', missing: [] })
    expect(await session.run(check)).toMatchObject({ error: null, value: [2, true], checkpoint: { grade: 'whole' } })
    const [branch] = await session.branch(1)
    expect(await branch?.run(check)).toMatchObject({ error: null, value: [2, true] })
    await branch?.close()
    expect(await session.run(`x = 4\n${CRASH}`)).toMatchObject({ state: 'rolled-back', missing: [] })
    expect((await session.restore(checkpoint)).missing).toHaveLength(1) // about files, as always
    expect(await session.run(check)).toMatchObject({ error: null, value: [2, true], stderr: '' })
  })

  test('the generator of another module named random is not restored, and the rollback says so', async () => {
    await using session = await workspace().session()
    await session.run('import sys, random\nsys.modules["random"] = object()\nx = 1')
    expect(await session.run('x = 2')).toMatchObject({ stderr: '', checkpoint: { grade: 'whole' } })
    const missing = ['the state of the module random is not restored']
    expect(await session.run(CRASH)).toMatchObject({ state: 'rolled-back', stderr: '', missing })
    expect(await session.run('x')).toMatchObject({ value: 2, stderr: '' })
  })

  const LIMIT = 'no process could be created for its copy: the limit of processes or of memory is reached'
  test.for([
    [
      'whose limit of processes is reached',
      'import resource as r\nr.setrlimit(r.RLIMIT_NPROC, (0, r.getrlimit(r.RLIMIT_NPROC)[1]))',
      'r.setrlimit(r.RLIMIT_NPROC, (r.getrlimit(r.RLIMIT_NPROC)[1],) * 2)',
      LIMIT,
    ],
    [
      'that has no os.fork',
      'import os\nfork, os.fork = os.fork, None',
      'os.fork = fork',
      "its copy could not be made: TypeError: 'NoneType' object is not callable",
    ],
    [
      'that has no signal.getitimer',
      'import signal\ngetitimer, signal.getitimer = signal.getitimer, None',
      'signal.getitimer = getitimer',
      "its copy could not be made: TypeError: 'NoneType' object is not callable",
    ],
  ] as const)('the state of a session %s does not count as whole', async ([, change, undo, why]) => {
    await using session = await workspace().session()
    await session.run('x = 1')
    await session.variables() // once the copy is there
    await session.run(`x = 2\n${change}`) // its copy fails once the result is on its way
    const told = { grade: 'none', lacks: [`no copy could be made after the last cell: ${why}`] }
    expect(await session.run('x = 3')).toMatchObject({ state: 'kept', stderr: '', checkpoint: told })
    expect(await session.run('x = 4')).toMatchObject({ state: 'kept', stderr: '', checkpoint: told })
    await expect(session.checkpoint()).rejects.toMatchObject({ message: expect.stringContaining(why) as string })
    const missing = [`the changes of 3 earlier cells: no copy could be made after them: ${why}`]
    const broken = await session.run(CRASH)
    expect(broken).toMatchObject({ state: 'rolled-back', missing, checkpoint: { grade: 'whole', lacks: [] } })
    // What was said about the state that is gone does not stay.
    expect(await session.run(`x += 10\n${change}`)).toMatchObject({ value: null, checkpoint: { grade: 'whole' } })
    expect(await session.run(`${undo}\nx`)).toMatchObject({ value: 11, checkpoint: told })
    await session.variables()
    expect(await session.run('x')).toMatchObject({ value: 11, checkpoint: { grade: 'whole', lacks: [] } })
    expect(await session.run(CRASH)).toMatchObject({ state: 'rolled-back', missing: [] })
    expect(await session.run('x')).toMatchObject({ value: 11 })
  })

  test('a cell that has used all descriptors ends, and its state is copied', async () => {
    await using session = await workspace().session()
    await session.run('import os, resource\nx = 1')
    const fill = `try:
    while True: fds.append(os.open("/dev/null", 0))
except OSError as error: print(error)
resource.getrlimit(resource.RLIMIT_NOFILE)`
    const filled = await session.run(`x = 2\nfds = []\n${fill}`)
    const stdout = "[Errno 24] Too many open files: '/dev/null'\n"
    const checkpoint = { grade: 'whole', lacks: [] }
    expect(filled).toMatchObject({ state: 'kept', stdout, stderr: '', checkpoint })
    // The limit of the next cell is the same, so it finds none left either.
    const next = await session.run(`before = len(fds)\n${fill}`)
    expect(next).toMatchObject({ state: 'kept', stdout, stderr: '', checkpoint, value: filled.value })
    expect(await session.run('len(fds) == before')).toMatchObject({ value: true })
    const kept = await session.checkpoint()
    expect(kept).toMatchObject({ grade: 'whole' })
    const [soft = 0] = filled.value as number[]
    const missing = soft > 1000 ? ['descriptors beyond the first 1000: not restored'] : []
    expect(await session.run(`x = 3\n${CRASH}`)).toMatchObject({ state: 'rolled-back', missing })
    expect(await session.run('x, resource.getrlimit(resource.RLIMIT_NOFILE)')).toMatchObject({
      value: [2, filled.value],
    })
    await session.restore(kept)
    const emptied = 'for fd in fds: os.close(fd)\nopen("/dev/null").close(); x'
    expect(await session.run(emptied)).toMatchObject({ value: 2, checkpoint })
  })

  test('a cell that leaves a few descriptors has a copy', async () => {
    await using session = await workspace().session()
    const fill = `import os, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (200, 2000))
def leave(count):
    fds = []
    try:
        while True: fds.append(os.dup(0))
    except OSError: pass
    for _ in range(count): os.close(fds.pop())
    return fds`
    await session.run(fill)
    for (const count of [1, 2, 3, 4, 5, 6]) {
      await session.run(`fds = leave(${count}); x = ${count}`)
      const next = await session.run('for fd in fds: os.close(fd)\nx')
      expect({ count, ...next.checkpoint }).toEqual({ count, grade: 'whole', lacks: [] })
      expect(await session.run(`x = 0; ${CRASH}`)).toMatchObject({ state: 'rolled-back', missing: [] })
      expect(await session.run('x')).toMatchObject({ value: count })
    }
  })

  test('a cell that leaves no descriptor below the hard limit ends, and the next one says why it cannot begin', async () => {
    await using session = await workspace().session()
    await session.run('import os, resource\nx = 1')
    await session.variables()
    const filled = await session.run(`x = 2
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
try:
    while True: os.open("/dev/null", 0)
except OSError: pass`)
    const lacks = [expect.stringMatching(/^it is not known what a copy would lack: OSError: \[Errno 24\]/) as string]
    expect(filled).toMatchObject({ state: 'kept', stderr: '', checkpoint: { grade: 'none', lacks } })
    expect(await session.run('x')).toMatchObject({
      status: 'crashed',
      state: 'rolled-back',
      stderr: 'the cell cannot begin: the process of the session has no descriptor left\n',
      missing: ['the changes of 1 earlier cells: no copy could be made after them: its copy ended at once'],
    })
    expect(await session.run('x')).toMatchObject({ value: 1, checkpoint: { grade: 'whole' } })
  })

  test('a cell after which nothing can be found out about its process ends with the grade none and the reason', async () => {
    await using session = await workspace().session()
    await session.run('import os, sys\nx = 1')
    const refuse = `refuses = True
def hook(event, _):
    if refuses and event == 'os.listdir': raise SystemExit('no lists')
sys.addaudithook(hook)`
    const told = (reason: string): object => ({
      status: 'step-done',
      state: 'kept',
      stderr: '',
      checkpoint: { grade: 'none', lacks: [`${reason}: SystemExit: no lists`] },
    })
    expect(await session.run(`x = 2\n${refuse}`)).toMatchObject(told('it is not known what a copy would lack'))
    const failed = 'no copy could be made after the last cell: its copy could not be made'
    expect(await session.run('x = 3')).toMatchObject(told(failed))
    await session.run('refuses = False')
    await session.variables()
    expect(await session.run('x')).toMatchObject({ value: 3, checkpoint: { grade: 'whole', lacks: [] } })
  })

  test('a cell whose end cannot be reported is rolled back at once', async () => {
    await using session = await workspace().session({ timeoutSec: 60 })
    // After a fork, the process locks its socket to report the end, which raises an audit event.
    await session.run('import os, sys\nx = 1\ndef hook(event, _): raise ValueError(event)')
    expect(await session.run('x = 2\nif os.fork() == 0: os._exit(0)\nos.wait()\nsys.addaudithook(hook)')).toMatchObject(
      {
        status: 'crashed',
        state: 'rolled-back',
        stderr: expect.stringMatching(/^the end of the cell cannot be reported: ValueError: .+\n$/) as string,
      },
    )
    expect(await session.run('x')).toMatchObject({ value: 1 })
  })

  test('duplicates of stdout and stderr go on after a rollback, a restore and in a branch', async () => {
    await using session = await workspace().session()
    await session.run(`import os, sys
saved = os.dup(2); os.dup2(1, 2) # stderr goes to stdout
sys.stdout = os.fdopen(os.dup(1), "w", buffering=1); print("before")`)
    const prints = 'print("out"); os.write(2, b"also out\\n"); os.write(saved, b"err\\n"); None'
    const printed = { error: null, stdout: 'out\nalso out\n', stderr: 'err\n' }
    expect(await session.run(prints)).toMatchObject(printed)
    const checkpoint = await session.checkpoint()
    expect(await session.run(CRASH)).toMatchObject({ state: 'rolled-back', missing: [] })
    expect(await session.run(prints)).toMatchObject(printed)
    const [branch] = await session.branch(1)
    expect(branch?.missing).toEqual([])
    expect(await branch?.run(prints)).toMatchObject(printed)
    expect(await branch?.run(CRASH)).toMatchObject({ state: 'rolled-back', missing: [] })
    expect(await branch?.run(prints)).toMatchObject(printed)
    await branch?.close()
    await session.restore(checkpoint)
    expect(await session.run(prints)).toMatchObject(printed)
    expect(await session.run(`os.dup2(saved, 2)\n${prints}`)).toMatchObject({
      stdout: 'out\n',
      stderr: 'also out\nerr\n',
    })
  })

  test('stdout that goes to a file still does after a rollback, and can be given back', async () => {
    await using session = await workspace().session()
    await session.run(
      'import os\nsaved, log = os.dup(1), open("stdout.log", "w+")\nos.dup2(log.fileno(), 1); print("before", flush=True)',
    )
    const broken = await session.run(`print("lost", flush=True); ${CRASH}`)
    expect(broken).toMatchObject({ state: 'rolled-back', missing: [] })
    const content = 'open("stdout.log").read()'
    expect(await session.run(`print("after", flush=True); ${content}`)).toMatchObject({
      stdout: '',
      value: 'before\nafter\n',
    })
    expect(await session.run(`_ = os.dup2(saved, 1); print("again"); ${content}`)).toMatchObject({
      stdout: 'again\n',
      value: 'before\nafter\n',
    })
    expect(await session.run(CRASH)).toMatchObject({ state: 'rolled-back', missing: [] })
    expect(await session.run('print("again")')).toMatchObject({ stdout: 'again\n' })
  })

  test('stdout that goes to a pipe is output again after a rollback, which names the pipe, and one that is closed stays so', async () => {
    await using session = await workspace().session()
    await session.run('import os\nread, write = os.pipe(); saved = os.dup(1); os.dup2(write, 1); os.close(write)')
    const missing = [expect.stringMatching(/^pipes and sockets are closed: .*\bpipe 1\b/)]
    expect(await session.run(CRASH)).toMatchObject({ state: 'rolled-back', missing })
    expect(await session.run('print("out")')).toMatchObject({ error: null, stdout: 'out\n' })
    await session.run('os.close(1)')
    expect(await session.run(CRASH)).toMatchObject({ state: 'rolled-back' })
    const dead = 'try: os.write(1, b"x")\nexcept OSError as error: found = error.errno\nfound'
    expect(await session.run(dead)).toMatchObject({ value: 9 })
    expect(await session.run('_ = os.dup2(saved, 1); print("out")')).toMatchObject({ stdout: 'out\n' })
  })
}
