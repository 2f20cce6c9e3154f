import { expect, test } from 'vitest'
import type { Store } from '../../src/artifacts/index.ts'
import type { Workspace } from '../../src/options/index.ts'
import type { Sandglass } from '../../src/sandglass.ts'

/** What every owner can do, also one that runs a single activity at a time: make files, and say what is there. */
const MAKE = `
import os
os.makedirs('d/e'); os.mkdir('none', 0o700)
open('d/e/f', 'w').write('hi'); os.chmod('d/e/f', 0o750); os.chmod('d/e', 0o550)
open('ünï', 'w').close(); open('doomed', 'w').write('x')
open('large', 'wb').write(bytes(range(256)) * 2000)
os.symlink('d/e/f', 'in'); os.symlink('/workspace/d', 'absolute'); os.symlink('/etc/passwd', 'out')
`
const CHANGE = `
import os
os.remove('doomed'); os.remove('in'); os.mkdir('in'); open('in/new', 'w').write('by another owner'); os.chmod('d/e/f', 0o640)
`
const LOOK = `
import hashlib, os
found = {}
for above, directories, files in os.walk('.'):
    for name in directories + files:
        path = os.path.relpath(os.path.join(above, name))
        if os.path.islink(path): found[path] = '-> ' + os.readlink(path)
        elif os.path.isdir(path): found[path] = 'd %o' % (os.stat(path).st_mode & 0o777)
        else: found[path] = '%o %s' % (os.stat(path).st_mode & 0o777, hashlib.sha256(open(path, 'rb').read()).hexdigest()[:8])
emit_result(found)
`
const MADE = {
  absolute: '-> /workspace/d',
  d: 'd 755',
  'd/e': 'd 550',
  'd/e/f': '750 8f434346',
  doomed: '644 2d711642',
  in: '-> d/e/f',
  large: '644 8acfcabd',
  none: 'd 700',
  ünï: '644 e3b0c442',
}

/** Tests of persisted workspaces: the next owner has another engine, or the same one. */
export function testPersistence(at: {
  readonly sg: Sandglass
  readonly other?: Sandglass
  readonly store: Store
}): void {
  test('a persisted workspace goes to an owner with another engine and back, with files, links and modes', async () => {
    const { sg, other = sg, store } = at
    const persist = 'engines'
    const first = await sg.workspace({ persist, store })
    expect((await first.run(MAKE)).error).toBeNull()
    const { skipped } = await first.sync()
    expect(skipped.map(({ path, reason }) => [path, reason])).toEqual([['out', 'link']])
    await first.close()
    const second = await other.workspace({ persist, store })
    expect(await entriesOf(second)).toEqual(MADE)
    expect((await second.run(CHANGE)).error).toBeNull()
    await second.close()
    await using third = await sg.workspace({ persist, store })
    const { doomed: _, ...rest } = MADE
    expect(await entriesOf(third)).toEqual({ ...rest, 'd/e/f': '640 8f434346', in: 'd 755', 'in/new': '644 f0f4ecd0' })
  })

  test('a checkpoint brings the files of a persisted workspace back, also to the next owner', async () => {
    const { sg, store } = at
    const persist = 'checkpoints'
    const first = await sg.workspace({ persist, store, files: { a: '1', 'd/b': '2' } })
    const point = await first.checkpoint()
    await first.run('import os\nos.remove("a"); open("d/b", "a").write("3"); open("c", "w").close()')
    expect(await first.restore(point)).toEqual({ written: 2, removed: 1, running: [] })
    expect(Buffer.from(await first.get('d/b')).toString()).toBe('2')
    await first.remove('d', { recursive: true })
    await first.close()
    await using second = await sg.workspace({ persist, store })
    expect(Object.keys((await entriesOf(second)) as object)).toEqual(['a'])
    expect((await second.restore(point)).written).toBe(2)
    expect(Buffer.from(await second.get('d/b')).toString()).toBe('2')
  })

  test('a checkpoint of a session brings its variables and the files of its workspace back', async ({ skip }) => {
    const { sg, store } = at
    const { sessions } = (await sg.report()).capabilities
    if (sessions !== 'checkpoints') {
      console.warn('skipped: a checkpoint of a session with files: sessions of this engine have no checkpoints')
      skip('sessions of this engine have no checkpoints')
    }
    await using session = await sg.session({ persist: 'sessions', store })
    await session.run('import os\nx = 1\nopen("a.txt", "w").write("one")')
    const both = await session.checkpoint('both', { files: true })
    expect(both.files).not.toBeNull()
    const look = async (): Promise<unknown> =>
      (await session.run('[x, open("a.txt").read(), sorted(os.listdir())]')).value
    for (const checkpoint of [both, 'both']) {
      await session.run('x = 2\nopen("a.txt", "w").write("two")\nopen("b.txt", "w").close()')
      const { missing } = await session.restore(checkpoint, { files: true })
      expect(missing).toEqual(['shared memory and the effects of host tools were not rolled back'])
      expect(await look()).toEqual([1, 'one', ['a.txt']])
    }
    // Without the files, they stay, and the session says so.
    await session.run('x = 3\nopen("a.txt", "w").write("three")')
    const { missing } = await session.restore(both)
    expect(missing).toEqual(['files, shared memory and the effects of host tools were not rolled back'])
    expect(await look()).toEqual([1, 'three', ['a.txt']])
  })
}

async function entriesOf(ws: Workspace): Promise<unknown> {
  return (await ws.run(LOOK)).finalData
}
