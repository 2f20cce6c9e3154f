import { setImmediate } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { logTo, publish, type StructuredLogger } from '../../../src/telemetry/index.ts'

type Line = readonly ['info' | 'warn', object, string]

/** A logger with the methods of pino, which depend on `this` as in pino. */
class Lines implements StructuredLogger {
  readonly lines: Line[] = []
  info(fields: object, message: string): void {
    this.lines.push(['info', fields, message])
  }
  warn(fields: object, message: string): void {
    this.lines.push(['warn', fields, message])
  }
}

const base = { trace_id: 't', run_id: 'r' }

describe('logTo (OR-09)', () => {
  test('writes a structured line for each event, and failures as warnings', () => {
    const logger = new Lines()
    const stop = logTo(logger)
    publish('scriptGenerated', () => ({ event: 'script_generated', ...base, ok: true, model: 'm' }))
    publish('scriptExecuted', () => ({ event: 'script_executed', ...base, ok: false, status: 'failed' }))
    publish('runEnded', () => ({ event: 'run_ended', ...base, ok: true }))
    stop()
    expect(logger.lines).toEqual([
      ['info', { event: 'script_generated', ...base, ok: true, model: 'm' }, 'script_generated'],
      ['warn', { event: 'script_executed', ...base, ok: false, status: 'failed' }, 'script_executed'],
      ['info', { event: 'run_ended', ...base, ok: true }, 'run_ended'],
    ])
  })

  test('stops writing when it is stopped, or when its scope ends', () => {
    const logger = new Lines()
    const stop = logTo(logger)
    stop()
    stop()
    {
      using _ = logTo(logger)
      publish('runEnded', () => ({ event: 'run_ended', ...base }))
    }
    publish('runEnded', () => ({ event: 'run_ended', ...base }))
    expect(logger.lines.length).toBe(1)
  })

  test('two loggers both get all events', () => {
    const [a, b] = [new Lines(), new Lines()]
    using _a = logTo(a)
    using _b = logTo(b)
    publish('runEnded', () => ({ event: 'run_ended', ...base }))
    expect([a.lines.length, b.lines.length]).toEqual([1, 1])
  })

  test('exceptions and rejections of a logger are ignored', async () => {
    const caught: unknown[] = []
    const note = (error: unknown): void => void caught.push(error)
    process.on('uncaughtException', note)
    process.on('unhandledRejection', note)
    const throwing: StructuredLogger = {
      info: () => {
        throw new Error('disk full')
      },
      // oxlint-disable-next-line no-misused-promises
      warn: () => Promise.reject(new Error('connection lost')),
    }
    const logger = new Lines()
    try {
      using _throwing = logTo(throwing)
      using _lines = logTo(logger)
      publish('runEnded', () => ({ event: 'run_ended', ...base, ok: true }))
      publish('runEnded', () => ({ event: 'run_ended', ...base, ok: false }))
      // Node reports both after the microtasks and ticks of this turn.
      await setImmediate()
    } finally {
      process.off('uncaughtException', note)
      process.off('unhandledRejection', note)
    }
    expect(caught).toEqual([])
    expect(logger.lines.map(([level]) => level)).toEqual(['info', 'warn'])
  })

  test('takes `console`, and refuses what cannot log', () => {
    logTo(console)()
    for (const wrong of [undefined, null, {}, { info: () => undefined }]) {
      expect(() => logTo(wrong as unknown as StructuredLogger)).toThrow(
        'logTo: the logger must have the methods info(fields, message) and warn(fields, message)',
      )
    }
  })
})
