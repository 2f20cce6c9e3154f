import { afterAll, beforeAll, expect, test } from 'vitest'
import { createSandglass, type Sandglass } from '../../../src/index.ts'

let sg: Sandglass
beforeAll(async () => {
  sg = await createSandglass({ engine: 'local', poolSize: 0, limits: { memoryBytes: 256 << 20 } })
})
afterAll(() => sg?.close())

const NODE = `import gc, weakref
from gc import collect
class Node: pass
def make(mebibytes):
    node = Node()
    node.self, node.data = node, bytearray(mebibytes << 20)
    return node`

test.for(['gc.collect()', 'collect(generation=2)', 'collect(2)'])(
  '%s frees cycles of earlier cells, also after a rollback',
  async (collect) => {
    await using session = await sg.session()
    await session.run(`${NODE}\nnode, other = make(80), make(1)\nnode.all = [[] for _ in range(1000)]`)
    await session.run('seen, other_seen = weakref.ref(node), weakref.ref(other)\ndel node')
    const freed = await session.run(`found = ${collect}\nfound > 1000 or found`)
    expect(freed).toMatchObject({ value: true, checkpoint: { grade: 'whole' } })
    // 80 + 120 MiB and the copy would be too much for the limit.
    expect(await session.run('len(bytearray(120 << 20)) and seen() is None')).toMatchObject({ value: true })
    const broken = await session.run('del other\nimport os; os._exit(1)')
    expect(broken).toMatchObject({ state: 'rolled-back', missing: [] })
    await session.run('del other')
    expect(await session.run(`${collect}\nother_seen() is None`)).toMatchObject({ value: true })
  },
)

test('a collection of the young, which libraries ask for often, leaves the objects of earlier cells alone', async () => {
  await using session = await sg.session()
  await session.run(`${NODE}\nnode = make(1)`)
  await session.run('seen = weakref.ref(node)\ndel node')
  expect(await session.run('gc.collect(0), collect(1)\nseen() is None')).toMatchObject({ value: false })
})

test('gc.collect passes for the function that it is', async () => {
  await using session = await sg.session()
  const asked = await session.run(
    'import gc, inspect, pickle\npickle.loads(pickle.dumps(gc.collect)) is gc.collect, str(inspect.signature(gc.collect)), gc.collect.__name__',
  )
  expect(asked.value).toEqual([true, '(generation=2)', 'collect'])
  const wrong = await session.run('gc.collect(3)')
  expect(wrong.error).toBe('ValueError: invalid generation')
  expect(wrong.stderr).toBe('')
})

test('large objects that are garbage cost a session neither its memory nor its copy', async () => {
  await using session = await sg.session()
  await session.run(NODE)
  for (let cell = 0; cell < 8; cell += 1) {
    const { state, checkpoint } = await session.run('node = make(60)')
    expect({ cell, state, checkpoint }).toEqual({ cell, state: 'kept', checkpoint: { grade: 'whole', lacks: [] } })
  }
})

test('garbage is collected between cells when the memory of the session grows', async () => {
  await using session = await sg.session()
  await session.run(`${NODE}\nnode = make(1)\nseen = weakref.ref(node)\ndel node`)
  await session.run('large = bytearray(40 << 20)')
  expect(await session.run('seen() is None')).toMatchObject({ value: true })
})
