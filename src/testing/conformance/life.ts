import assert from 'node:assert/strict'
import { SandglassError } from '../../errors/index.ts'
import { PROTOCOL_VERSION } from '../../protocol/index.ts'
import type { Fixture } from './fixture.ts'
import { HarnessPeer } from './peer.ts'

/** Tests a sandbox from its start to its end, and the requests between runs. */
export function registerLifeTests(at: Fixture): void {
  at.test('is ready once, after its tools are loaded, and says which protocol and Python', ['broker', 'engine'], () =>
    at.with({}, async (peer, sandbox) => {
      const { checks, python, ...ready } = sandbox.ready
      const nothing = { loaded: [], failed: [] }
      assert.deepEqual(ready, {
        type: 'ready',
        protocol: PROTOCOL_VERSION,
        tools: nothing,
        preload: { ...nothing, deferred: [] },
      })
      assert.match(python, /^3\.1\d\.\d+/)
      assert.equal(sandbox.info.python, python)
      assert.equal(typeof checks, 'object')
      await peer.ping('first') // the next frame: a second `ready` would come before it
      const run = await peer.run('emit_result(1)')
      assert.deepEqual(run.events, [{ type: 'final_result', data: 1 }])
      await peer.ping('second')
    }),
  )

  at.test('serves requests until its input ends, then ends itself', ['broker', 'engine'], async () => {
    const sandbox = await at.create()
    sandbox.channel.close()
    const ending = await sandbox.closed
    assert.deepEqual({ cause: ending.cause, exitCode: ending.exitCode }, { cause: 'exit', exitCode: 0 })
    await sandbox.destroy()
  })

  at.test('ends in the middle of a run when its input ends', ['broker', 'engine'], async () => {
    const sandbox = await at.create()
    const peer = new HarnessPeer(sandbox)
    await peer.send(peer.request("emit_log('up')\nwhile True: pass"))
    await peer.expect('log')
    sandbox.channel.close()
    assert.equal((await sandbox.closed).cause, 'exit')
    await sandbox.destroy()
  })

  at.test(
    'is destroyed as often as one likes, and nothing can be sent or received afterwards',
    ['engine'],
    async () => {
      const sandbox = await at.create()
      const peer = new HarnessPeer(sandbox)
      await peer.send(peer.request("emit_log('up')\nwhile True: pass"))
      await peer.expect('log')
      await Promise.all([sandbox.destroy(), sandbox.destroy()])
      await sandbox[Symbol.asyncDispose]()
      const { cause, by } = await sandbox.closed
      assert.deepEqual({ cause, by }, { cause: 'destroyed', by: 'host' })
      assert.equal(await peer.next(), null)
      await assert.rejects(sandbox.channel.send(Buffer.from('{"type":"ping","nonce":"x"}\n')))
      sandbox.channel.close()
    },
  )

  at.test('is not made when the signal has fired, or fires meanwhile', ['engine'], async () => {
    const isAborted = (error: unknown): boolean => error instanceof SandglassError && error.code === 'aborted'
    await assert.rejects(at.create({}, AbortSignal.abort()), isAborted)
    const abort = new AbortController()
    const creating = at.create({}, abort.signal)
    setImmediate(() => abort.abort())
    await assert.rejects(creating, isAborted)
  })

  at.test('answers a ping between runs and during one', ['broker'], () =>
    at.withAny(async (peer) => {
      await peer.ping('')
      const request = peer.request("emit_log('up')\nwhile True: pass", { timeout_sec: 60 })
      await peer.send(request)
      await peer.expect('log')
      await peer.ping('n'.repeat(64))
      await peer.send({ type: 'cancel', execution_id: request.execution_id })
      await peer.finish(request.execution_id)
      await peer.ping('after')
    }),
  )

  at.test('ignores frames of a type that it does not know', ['broker'], () =>
    at.withAny(async (peer) => {
      await peer.sendRaw('{"type":"no_such_frame","nonce":"1","data":[1]}\n\n  \n')
      await peer.ping('after')
    }),
  )

  at.test('takes a request that arrives in any pieces', ['broker', 'channel'], () =>
    at.withAny(async (peer) => {
      const request = peer.request('emit_result("ü€😀")')
      const bytes = Buffer.from(`${JSON.stringify(request)}\n`)
      const cuts = [1, bytes.indexOf(0xc3) + 1, bytes.indexOf(0xf0) + 2, bytes.length - 1]
      for (const [n, cut] of [...cuts, bytes.length].entries())
        await peer.sendRaw(bytes.subarray(cuts[n - 1] ?? 0, cut))
      assert.equal((await peer.finish(request.execution_id)).result, 'ü€😀')
    }),
  )

  at.test('refuses a second script while one runs, and the first goes on', ['broker'], () =>
    at.withAny(async (peer) => {
      const first = peer.request("emit_log('up')\nwhile True: pass", { timeout_sec: 60 })
      await peer.send(first)
      await peer.expect('log')
      const second = await peer.run('emit_result(2)')
      const [event, ...others] = second.events
      assert.deepEqual([event?.['type'], event?.['kind'], others], ['error', 'request', []])
      assert.match(String(event?.['message']), /^SANDBOX_BUSY/)
      assert.equal(second.done.ending?.cause, 'not-started')
      await peer.send({ type: 'cancel', execution_id: first.execution_id })
      assert.equal((await peer.finish(first.execution_id)).done.ending?.cause, 'cancelled')
    }),
  )

  at.test('ends a run that is cancelled, and leaves every other alone', ['broker'], () =>
    at.withAny(async (peer) => {
      await peer.send({ type: 'cancel', execution_id: 'nobody' })
      const request = peer.request("emit_log('up')\nwhile True: pass", { timeout_sec: 60 })
      await peer.send(request)
      await peer.expect('log')
      await peer.send(
        { type: 'cancel', execution_id: 'nobody' },
        { type: 'cancel', execution_id: request.execution_id },
      )
      const { events, done } = await peer.finish(request.execution_id)
      assert.deepEqual(events, [
        { type: 'error', message: 'the run was cancelled', traceback: null, kind: 'cancelled' },
      ])
      assert.deepEqual(
        { cause: done.ending?.cause, by: done.ending?.by, reusable: done.reusable },
        { cause: 'cancelled', by: 'host', reusable: true },
      )
      assert.equal((await peer.run('emit_result(2)')).result, 2)
    }),
  )

  at.test('resets between runs: kills and wipes', ['broker'], () =>
    at.withAny(async (peer) => {
      const content = Buffer.from('left').toString('base64')
      await peer.send(
        { type: 'file_put', execution_id: 'abandoned', path: 'left', mode: 0o644, offset: 0, content_base64: content },
        { type: 'reset', nonce: 'r1' },
      )
      assert.deepEqual(await peer.next(), { type: 'reset_done', nonce: 'r1', reusable: true })
      assert.deepEqual((await peer.run("import os\nemit_result(os.listdir('.'))")).result, [])
      await peer.send({ type: 'reset', nonce: 'r2' })
      assert.deepEqual(await peer.next(), { type: 'reset_done', nonce: 'r2', reusable: true })
    }),
  )

  at.test('does not reset in the middle of a run', ['broker'], () =>
    at.withAny(async (peer) => {
      const request = peer.request("emit_log('up')\nwhile True: pass", { timeout_sec: 60 })
      await peer.send(request)
      await peer.expect('log')
      await peer.send({ type: 'reset', nonce: 'r' })
      assert.deepEqual(await peer.next(), { type: 'reset_done', nonce: 'r', reusable: false })
      await peer.send({ type: 'cancel', execution_id: request.execution_id })
      assert.equal((await peer.finish(request.execution_id)).done.ending?.cause, 'cancelled')
    }),
  )
}
