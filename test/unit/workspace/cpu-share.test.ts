import { expect, test } from 'vitest'
import { ScriptExecutor } from '../../../src/executor/index.ts'
import { CpuQuota } from '../../../src/sandbox/index.ts'
import { FakeWorkspace } from '../../support/fake-workspace.ts'

/** A workspace that notes in order what its sandbox is told, and the CPU limits that are written. */
function limited(write: (cpus: number | null) => void = () => {}): { fake: FakeWorkspace; order: unknown[] } {
  const order: unknown[] = []
  const cpu = new CpuQuota(1, async (cpus) => {
    write(cpus)
    order.push(cpus)
  })
  const fake = new FakeWorkspace({ cpu })
  fake.answer = ({ type, execution_id: id }) => {
    order.push(type)
    if (type === 'start') fake.frames({ type: 'started', execution_id: id, pid: 7 })
    if (type === 'cancel') fake.done(id, { ending: null, error: { code: 'cancelled', message: 'it was cancelled' } })
  }
  return { fake, order }
}

const limits = { cpus: 0.5 }

test('the share of a program is in force before it starts, until it ends', async () => {
  const { fake, order } = limited()
  const program = await fake.ws.start('sleep', ['9'], { limits })
  expect(order).toEqual([0.5, 'start'])
  await program.close()
  await new Promise(setImmediate)
  expect(order).toEqual([0.5, 'start', 'cancel', 1])
})

test('a program whose share cannot be set does not start, and others do', async () => {
  const { fake, order } = limited((cpus) => {
    if (cpus === 0.5) throw new Error('EIO')
  })
  await expect(fake.ws.exec('true', [], { limits })).rejects.toMatchObject({
    code: 'limit_not_enforceable',
    message: expect.stringContaining('EIO') as string,
  })
  await fake.ws.start('true')
  expect(order).toEqual([1, 'start'])
})

test('a script whose share cannot be set does not start, and the reason is told once', async () => {
  const { fake, order } = limited((cpus) => {
    if (cpus === 0.5) throw new Error('EIO')
  })
  const borrowed = await fake.ws.borrow({ hasSecrets: false, shareSecrets: false, maxOutputBytes: 1000 })
  const { sandbox, executionId } = borrowed
  const running = new ScriptExecutor({ limits }).run({ script: '1', sandbox, executionId })
  await expect(running).rejects.toMatchObject({
    code: 'limit_not_enforceable',
    message: 'limits.cpus: 0.5 cannot be enforced in this workspace: it could not be set: EIO',
  })
  await borrowed.release()
  expect(order).toEqual([1])
})

test('a workspace whose limit cannot be restored is lost', async () => {
  const { fake } = limited((cpus) => {
    if (cpus === 1) throw new Error('EIO')
  })
  const program = await fake.ws.start('sleep', ['9'], { limits })
  await program.close()
  await expect(fake.ws.exec('true')).rejects.toMatchObject({ code: 'workspace_lost' })
})

test('a share is refused where the limit cannot be changed', async () => {
  const fake = new FakeWorkspace()
  await expect(fake.ws.exec('true', [], { limits })).rejects.toMatchObject({
    code: 'limit_not_enforceable',
    message: 'limits.cpus: 0.5 cannot be enforced in this workspace: the engine fake does not limit CPU time',
  })
  for (const cpus of [0.01, Number.NaN, '1']) {
    const refused = fake.ws.exec('true', [], { limits: { cpus } as typeof limits })
    await expect(refused).rejects.toMatchObject({ code: 'invalid_request' })
  }
  expect(fake.said).toEqual([])
})
