import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { beginSpan, type SpanAttributes, traceSpan, withoutSpans, withTrace } from '../../../src/telemetry/index.ts'
import { hearSpans } from '../../support/hear-spans.ts'

describe('WS-27: spans', () => {
  test('a span ends with what was found out, and what the function returns is not published', async () => {
    using heard = hearSpans()
    const result = await withTrace({ traceId: 't' }, () =>
      traceSpan('workspace.run', { cmd: 'sh' }, async (found) => {
        found.exit_code = 4
        return { stdout: 'private' }
      }),
    )
    expect(result).toEqual({ stdout: 'private' })
    expect(heard.ended).toEqual([['run', { trace_id: 't', cmd: 'sh', exit_code: 4 }]])
  })

  test('a failure is published, and thrown as it is', async () => {
    using heard = hearSpans()
    const error = new Error('failed')
    const failing = traceSpan('workspace.collect', { patterns: ['*'] }, () => Promise.reject(error))
    await expect(failing).rejects.toBe(error)
    expect(heard.ended).toEqual([['collect', { patterns: ['*'], error }]])
  })

  test('a span that is begun ends once', async () => {
    using heard = hearSpans()
    const attributes: SpanAttributes = { cmd: 'sh' }
    const [end, fail] = [beginSpan('workspace.run', attributes), beginSpan('workspace.run', {})]
    expect(heard.ended).toEqual([])
    attributes.exit_code = 0
    end()
    end(new Error('late'))
    const error = new Error('failed')
    fail(error)
    await setImmediate()
    expect(heard.ended).toEqual([
      ['run', { cmd: 'sh', exit_code: 0 }],
      ['run', { error }],
    ])
  })

  test('a part of something else has no spans but the end of a workspace', async () => {
    using heard = hearSpans()
    await withoutSpans(async () => {
      await traceSpan('workspace.stage.files', {}, async () => undefined)
      beginSpan('workspace.run', {})()
      await traceSpan('workspace.cleanup', {}, async () => undefined)
    })
    expect(heard.ended).toEqual([['cleanup', {}]])
  })

  test('without a subscriber the function is called, and nothing else happens', async () => {
    const attributes: SpanAttributes = {}
    const calls: SpanAttributes[] = []
    const act = async (found: SpanAttributes): Promise<number> => calls.push(found)
    expect(await withTrace({ traceId: 't' }, () => traceSpan('workspace.run', attributes, act))).toBe(1)
    expect(calls[0]).toBe(attributes)
    expect(attributes).toEqual({})
    beginSpan('workspace.run', attributes)(new Error('nobody hears it'))
  })
})
