import { expect, test } from 'vitest'
import { ProgramLog } from '../../../src/workspace/program-log.ts'
import { workspaceCases } from '../../support/workspace-cases.ts'

const MiB = 1024 * 1024

test('WS-17: each byte is returned once by poll, an unterminated prompt at once, and log leaves the cursor alone', async () => {
  const { log } = logOf()
  log.push('stdout', Buffer.from('choose: '), 8)
  expect(await log.poll()).toEqual({ text: 'choose: ', offset: 0, nextOffset: 8, dropped: 0 })
  expect((await log.poll()).text).toBe('')
  expect(log.look().text).toBe('choose: ')
  log.push('stdout', Buffer.from('7\n'), 2)
  expect(await log.poll()).toEqual({ text: '7\n', offset: 8, nextOffset: 10, dropped: 0 })
  expect(log.look({ offset: 4 }).text).toBe('se: 7\n')
})

test('WS-17: CRLF and characters that are split come out whole, also with stderr between', async () => {
  const { log } = logOf()
  const bytes = Buffer.from('aü漢🎉\r\nb\r\n')
  let text = ''
  for (const byte of bytes) {
    log.push('stdout', Uint8Array.of(byte), 1)
    log.push('stderr', Buffer.from('!'), 1)
    text += (await log.poll()).text
  }
  log.close()
  text += (await log.poll()).text
  expect(text.replaceAll('!', '').replaceAll('\r', '')).toBe('aü漢🎉\nb\n')
  const alone = logOf().log
  let whole = ''
  for (const byte of bytes) {
    alone.push('stdout', Uint8Array.of(byte), 1)
    whole += (await alone.poll()).text
  }
  expect(whole).toBe('aü漢🎉\nb\n')
})

test('WS-17: the log is bounded and says what it dropped', async () => {
  const { log, credits } = logOf(16)
  log.push('stdout', Buffer.from('0123456789'), 10)
  log.push('stdout', Buffer.from('abcdefghij'), 10)
  expect(await log.poll()).toEqual({ text: '456789abcdefghij', offset: 4, nextOffset: 20, dropped: 4 })
  expect(log.look({ offset: 0 }).dropped).toBe(4)
  expect(credits).toEqual({ stdout: 20, stderr: 0 })
})

test('WS-17: a reader gets every byte of its stream, and only what it took is credited', async () => {
  const { log, credits } = logOf()
  const reader = log.read()
  const first = reader.next()
  log.push('stdout', Buffer.from('one'), 3)
  log.push('stderr', Buffer.from('two'), 3)
  expect(await first).toEqual({ done: false, value: { stream: 'stdout', bytes: Buffer.from('one') } })
  expect(credits).toEqual({ stdout: 0, stderr: 0 })
  expect((await reader.next()).value).toEqual({ stream: 'stderr', bytes: Buffer.from('two') })
  expect(credits).toEqual({ stdout: 3, stderr: 0 })
  log.close()
  expect((await reader.next()).done).toBe(true)
  expect(credits).toEqual({ stdout: 3, stderr: 3 })
})

test('WS-16: a poll waits for output, for the end, or for its time; it goes on while output settles', async () => {
  const { log } = logOf()
  const waiting = log.poll({ waitMs: 10_000, settleMs: 20 })
  for (const letter of ['a', 'b', 'c', 'd']) {
    log.push('stdout', Buffer.from(letter), 1)
    await Promise.resolve()
  }
  expect(await waiting).toMatchObject({ text: 'abcd', offset: 0, nextOffset: 4 })
  for (const { polls, expected } of workspaceCases('wait_for_program_output')['cases'] ?? []) {
    const { log: other } = logOf()
    const whole = other.poll({ waitMs: 10_000, settleMs: 20 })
    for (const { output, status } of polls as { output: string; status: string }[]) {
      other.push('stdout', Buffer.from(output), output.length)
      await Promise.resolve()
      if (status === 'exited') other.close()
    }
    const { output: text, offset, next_offset: nextOffset } = expected as Record<string, unknown>
    expect(await whole).toMatchObject({ text, offset, nextOffset })
  }
  expect((await log.poll({ waitMs: 5 })).text).toBe('')
  const last = log.poll({ waitMs: 10_000 })
  log.close()
  expect((await last).text).toBe('')
})

test('WS-16: concurrent polls share the output between them', async () => {
  const { log } = logOf()
  const polls = [log.poll({ waitMs: 50 }), log.poll({ waitMs: 50 })]
  log.push('stdout', Buffer.from('once'), 4)
  expect((await Promise.all(polls)).map(({ text }) => text).join('')).toBe('once')
})

function logOf(capacity = MiB): { log: ProgramLog; credits: Record<'stdout' | 'stderr', number> } {
  const credits = { stdout: 0, stderr: 0 }
  const log = new ProgramLog(capacity, (stream, bytes) => {
    credits[stream] += bytes
  })
  return { log, credits }
}
