import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { EngineUnderTest } from '../driver/engine.ts'
import type { TestedEngine } from '../engines/tested.ts'
import { unexplained } from '../known-differences.ts'
import { type Bench, openBench, PIDS } from '../supervisor/bench.ts'

/* Attacks of a script on the harness around it. The checker is off. */

export async function supervisor(tested: TestedEngine): Promise<void> {
  const { skip, open } = await tested.ready()
  describe.skipIf(skip)(`a script against broker and zygote on the ${tested.name} engine`, () => {
    let engine: EngineUnderTest
    let bench: Bench

    beforeAll(async () => {
      engine = open()
      bench = await openBench(engine)
    })
    afterAll(async () => {
      await bench.close()
      await engine.close()
    })

    test('cannot open, list or write their files below /proc', async () => {
      const { finalData } = await bench.run('proc_files')
      const { broker, zygote } = finalData as Record<'broker' | 'zygote', Record<string, string>>
      expect(broker).toEqual(zygote)
      // The kernel lets every process open this file and rejects the write.
      const { 'write timerslack_ns': slack, ...others } = broker
      expect(slack).toBe('EPERM')
      expect(Object.keys(others)).toHaveLength(25)
      expect(new Set(Object.values(others))).toEqual(new Set(['EACCES']))
    })

    test('is refused every system call of the filter, each with its errno', async () => {
      const { refused, ownPidOnly, families } = bench.filter
      const { finalData } = await bench.run('system_calls', {
        names_refused: refused,
        names_own_pid: ownPidOnly,
        families_allowed: families,
      })
      const who = ['broker', 'zygote', 'itself by number']
      const allFamilies = Array.from({ length: 64 }, (_, family) => family)
      expect(finalData).toEqual({
        refused: { EPERM: refused },
        others: { EPERM: ownPidOnly.flatMap((name) => who.map((target) => `${name} ${target}`)) },
        families: { EAFNOSUPPORT: allFamilies.filter((family) => !families.includes(family)) },
        families_high: 'EAFNOSUPPORT',
        namespaces: { EPERM: ['NEWNS', 'NEWCGROUP', 'NEWUTS', 'NEWIPC', 'NEWUSER', 'NEWPID', 'NEWNET'] },
        clone3: 'ENOSYS',
        terminal: { EPERM: ['TIOCSTI', 'TIOCLINUX', 'TIOCSTI above an int'] },
        x32: 'signal 31',
        i386: 'signal 31',
      })
      expect(refused).toEqual(
        expect.arrayContaining(['pidfd_getfd', 'ptrace', 'process_vm_readv', 'process_vm_writev']),
      )
    })

    test('changes no limit, priority or scheduling but its own', async () => {
      const { finalData } = await bench.run('foreign_settings')
      const { itself, ...others } = finalData as Record<string, Record<string, string>>
      const outcomes = Object.entries(others).map(([who, tried]) => [
        who,
        Object.keys(tried).length,
        ...new Set(Object.values(tried)),
      ])
      expect(outcomes).toEqual([
        ['broker', 9, 'EPERM'],
        ['zygote', 9, 'EPERM'],
        ['all', 6, 'EPERM'],
      ])
      expect(new Set(Object.values(itself ?? {}))).toEqual(new Set(['done']))
      const { finalData: settings } = await bench.run('snapshot')
      expect(settings).toMatchObject({ nice: 10, policy: 0 })
    })

    test('keeps what an ordinary program needs', async () => {
      const { finalData, error } = await bench.run('allowed')
      expect(error).toBeNull()
      const refused = Object.entries(finalData as Record<string, boolean>).filter(([, works]) => !works)
      expect(refused.map(([name]) => name)).toEqual(engine.blockedByEngineFilter)
      expect(Object.keys(finalData as object)).toHaveLength(15)
    })

    test.each([
      ['the broker', ['broker'], ['SIGKILL', 'SIGSTOP', 'SIGINT', 'SIGTERM', 'SIGSEGV', 'SIGCHLD', 'SIGALRM']],
      ['the zygote', ['zygote'], ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGCHLD', 'SIGALRM', 'SIGTSTP']],
    ])('does nothing to %s by a signal that can be blocked', async (_name, targets, signals) => {
      for (const which of signals) {
        const { finalData, error, sandbox } = await bench.run('signals', { targets, which })
        expect([which, finalData, error]).toEqual([which, 'alive', null])
        expect((await bench.next()).sandbox.id).toBe(sandbox.id)
      }
    })

    test.each(['SIGKILL', 'SIGSTOP'])('loses its sandbox, and nothing else, by %s at the zygote', async (which) => {
      const { finalData, durationMs, sandbox } = await bench.run('signals', { targets: ['broker', 'zygote'], which })
      expect(finalData).toBe('alive')
      expect(durationMs).toBeLessThan(5000)
      expect((await bench.next()).sandbox.id).not.toBe(sandbox.id)
      await bench.noSurvivors(sandbox.id)
    })

    test('is not believed when it writes frames that are not its own', async () => {
      const result = await bench.run('forged_frames', { run_id: 'mine' }, { executionId: 'mine' })
      expect(result).toMatchObject({
        status: 'completed',
        finalData: 'real',
        stdout: '',
        files: [],
        executionId: 'mine',
      })
      expect(result.sandbox.use).not.toBe(99)
      expect(result.warnings.map(({ code }) => code)).toEqual(['second_result'])
      expect((await bench.next()).sandbox.id).toBe(result.sandbox.id)
    })

    test('cannot keep its run open with a daemon that holds the pipes', async () => {
      const { status, finalData, durationMs, sandbox } = await bench.run('daemon')
      expect([status, finalData]).toEqual(['completed', 'left'])
      expect(durationMs).toBeLessThan(5000)
      await bench.noSurvivors(sandbox.id)
      await bench.next()
    })

    test('does not delay its deadline by stopping itself', async () => {
      const { status, intermediates, durationMs, sandbox } = await bench.run('stop_itself', {}, shortly)
      expect([status, intermediates.length]).toEqual(['timed-out', 1])
      expect(durationMs).toBeLessThan(6000)
      await bench.noSurvivors(sandbox.id)
      await bench.next()
    })

    test.each([
      ['stdout', 1],
      ['stderr', 2],
      ['its frame socket', 3],
    ])('is ended when it writes to %s without end', async (_name, descriptor) => {
      const { status, sandbox } = await bench.run('write_without_end', { descriptor })
      expect(status).toBe('output-limit')
      await bench.noSurvivors(sandbox.id)
      await bench.next()
    })

    test('is the first process that the kernel kills for memory, whatever its oom_score_adj', async () => {
      const { errorKind, intermediates, sandbox } = await bench.run('lower_oom_score')
      expect(errorKind).toBe('oom')
      // A value below 0 needs a capability, and the files of other processes are not writable.
      const lowest = Number(intermediates[0]?.data)
      expect([lowest >= 0, intermediates.length]).toEqual([true, 1])
      await bench.noSurvivors(sandbox.id)
      await bench.next()
    })

    test.each(['bytes', 'files', 'directories'])(
      'fills every file system with %s, and the next run finds it empty',
      async (way) => {
        const { finalData, error } = await bench.run('fill', { way })
        const full = way === 'bytes' ? 'ENOSPC' : 'ETIME'
        expect(error).toBeNull()
        expect(finalData).toEqual({
          '/workspace': full,
          '/tmp': full,
          '/var/tmp': full,
          '/dev/shm': full,
          ...engine.readOnly,
        })
        await bench.next()
        const { finalData: seen } = await bench.run('snapshot')
        expect(seen).toMatchObject({ files: { '/workspace': [], '/tmp': [], '/var/tmp': [], '/dev/shm': [] } })
      },
    )

    test('leaves nothing that the next run can see', async () => {
      const before = await bench.run('snapshot')
      const { finalData: tried, error } = await bench.run('leave_behind', {}, { sandboxId: before.sandbox.id })
      expect(error).toBeNull()
      expect(Object.values(tried as Record<string, string>)).not.toContain('done')
      expect(tried).toMatchObject({ shmget: 'EPERM', semget: 'EPERM', msgget: 'EPERM', mq_open: 'EPERM' })
      expect(tried).toMatchObject({ add_key: 'EPERM', keyctl: 'EPERM', 'kernel/sem': 'EROFS' })
      expect(tried).toMatchObject({ '/dev/left': engine.readOnly['/dev'] })
      const after = await bench.run('snapshot', {}, { sandboxId: before.sandbox.id })
      expect(after.sandbox.id).toBe(before.sandbox.id)
      expect(after.finalData).toEqual(before.finalData)
    })

    test('that writes everywhere changes nothing for the next run except known differences', async () => {
      const options = { limits: { maxOutputBytes: 2 ** 26 } }
      const before = await bench.run('readable', {}, options)
      const there = { ...options, sandboxId: before.sandbox.id }
      const wrote = await bench.run('write_everywhere', {}, there)
      const after = await bench.run('readable', {}, there)
      expect([before.error, wrote.error, after.error]).toEqual([null, null, null])
      expect(wrote.finalData).toBeGreaterThan(500)
      expect([wrote.sandbox.id, after.sandbox.id]).toEqual([before.sandbox.id, before.sandbox.id])
      const [was, is] = [before, after].map(({ finalData }) => finalData as Record<string, string>)
      expect(Object.keys(is ?? {}).length).toBeGreaterThan(4000)
      expect(unexplained(was ?? {}, is ?? {})).toEqual([])
    })

    test('leaves no script, secret, input or result in the memory of the next run', async () => {
      const values = new Map(
        ['script', 'secret', 'input', 'result', 'log', 'control'].map((name) => [name, newValue()]),
      )
      const value = (name: string): string => values.get(name) ?? ''
      const script = `mine = ${JSON.stringify(value('script'))}
kept = [mine + str(n) for n in range(1000)]
import os
os.environ["SECRET"] * 3
emit_log(${JSON.stringify(value('log'))})
emit_result(result)`
      const inputs = { result: value('result'), input: value('input') }
      const first = await bench.runText(script, { inputs, secrets: { SECRET: value('secret') } })
      expect(first.finalData).toBe(value('result'))
      const needles = Object.fromEntries([...values].map(([name, text]) => [name, halvesOf(text)]))
      const second = await bench.run(
        'scan_memory',
        { needles },
        { secrets: { CONTROL: value('control') }, sandboxId: first.sandbox.id },
      )
      expect(second.error).toBeNull()
      expect(second.sandbox.id).toBe(first.sandbox.id)
      expect(second.finalData).toMatchObject({
        found: { script: false, secret: false, input: false, result: false, log: false, control: true },
      })
    })

    describe.each([
      ['at the deadline', { ends_first: false, kills_zygote: false }],
      ['when the script ends', { ends_first: true, kills_zygote: false }],
      ['after the zygote was killed', { ends_first: true, kills_zygote: true }],
    ])('has no survivor of a fork bomb that goes on %s', (_when, how) => {
      test.each(['plain', 'sessions', 'programs', 'parents_go'])('%s', async (kind) => {
        const { finalData, sandbox, durationMs } = await bench.run('fork_bomb', { kind, ...how }, shortly)
        expect(finalData).toBe(how.ends_first ? 'ended' : 'bombing')
        expect(durationMs).toBeLessThan(6000)
        await bench.noSurvivors(sandbox.id)
        await bench.next()
      })
    })
  })
}

const shortly = { limits: { executionTimeoutSec: 1, pids: PIDS } }

function newValue(): string {
  return randomBytes(24).toString('hex')
}

/** The scanner must not find its own input, so the second half is reversed. */
function halvesOf(text: string): [string, string] {
  const middle = text.length / 2
  return [text.slice(0, middle), Array.from(text.slice(middle)).toReversed().join('')]
}
