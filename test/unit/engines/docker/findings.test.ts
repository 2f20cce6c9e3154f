import { describe, expect, test } from 'vitest'
import { enforcedLimits, levelOf, missingLimits } from '../../../../src/engines/docker/findings.ts'
import { kernelOf } from '../../../../src/engines/docker/daemon-info.ts'
import { guessNeeds, kindOf, overheadOf } from '../../../../src/engines/docker/runtime-needs.ts'

const MiB = 1024 * 1024
const KERNEL = '6.18.44'

describe('the level', () => {
  test.each([
    ['the daemon’s kernel is a container', { gvisor: false, kernel: KERNEL }, 'container'],
    ['a kernel that says it is gVisor’s is gVisor', { gvisor: true, kernel: '4.4.0' }, 'gvisor'],
    ['any other kernel is a virtual machine, as that of Kata', { gvisor: false, kernel: '5.15.26.container' }, 'vm'],
    ['the daemon’s kernel is a container, also where it is gVisor’s', { gvisor: true, kernel: KERNEL }, 'container'],
  ])('%s', (_, checks, level) => {
    expect(levelOf(checks, KERNEL)).toBe(level)
  })

  test.each([{ KernelVersion: '<unknown>' }, { KernelVersion: '' }, {}])(
    'is `container` where the daemon does not report its kernel: %j',
    (info) => {
      const kernels = ['5.15.26.container', '4.4.0', KERNEL]
      expect(kernels.map((kernel) => levelOf({ gvisor: false, kernel }, kernelOf(info)))).toEqual(
        kernels.map(() => 'container'),
      )
    },
  )
})

describe('the limits in force', () => {
  const limits = { memoryBytes: 512 * MiB, cpus: 1, pids: 128, diskBytes: 128 * MiB }
  const plain = { checks: { memory_limit: 512 * MiB, pids_limit: 128, cpu_limit: 1 }, hasQuota: false }
  const none = { pids: 0, memoryBytes: 0 }
  const all = ['memory', 'pids', 'cpu', 'disk', 'output', 'wall']

  test('are the limits that the control group shows', () => {
    expect(enforcedLimits(limits, { ...plain, overhead: none })).toEqual(all)
  })

  test.each([
    ['memory', { memory_limit: null }],
    ['memory', { memory_limit: 513 * MiB }],
    ['pids', { pids_limit: null }],
    ['pids', { pids_limit: 129 }],
    ['cpu', { cpu_limit: null }],
    ['cpu', { cpu_limit: 2 }],
  ])('lack %s with %o', (missing, checks) => {
    const found = enforcedLimits(limits, { ...plain, checks: { ...plain.checks, ...checks }, overhead: none })
    expect(found).toEqual(all.filter((limit) => limit !== missing))
  })

  test('report each missing limit with a remedy', () => {
    expect(missingLimits(['disk', 'output', 'wall', 'memory'])).toEqual({
      pids: expect.stringMatching(/limits pids; enable the controller.*docs\/docker\.md/) as string,
      cpu: expect.stringMatching(/limits cpu; enable the controller.*docs\/docker\.md/) as string,
    })
    expect(missingLimits(['memory', 'pids', 'cpu', 'disk', 'output', 'wall'])).toEqual({})
  })

  test("are compared after the kernel's rounding to pages and microseconds", () => {
    const checks = { memory_limit: 100_003_840, pids_limit: 128, cpu_limit: 0.333_33 }
    const odd = { ...limits, memoryBytes: 100_007_001, cpus: 1 / 3 }
    expect(enforcedLimits(odd, { checks, overhead: none, hasQuota: false })).toEqual(all)
  })

  test('include the runtime’s own memory, and the quota that the daemon reports', () => {
    const overhead = overheadOf('gvisor', limits)
    const memory = limits.memoryBytes + overhead.memoryBytes
    const checks = { memory_limit: memory, pids_limit: 128, cpu_limit: null }
    expect(enforcedLimits(limits, { checks, overhead, hasQuota: true })).toEqual(all)
    expect(enforcedLimits(limits, { checks, overhead, hasQuota: false })).toEqual(all.filter((one) => one !== 'cpu'))
    // The group's limit of processes is far higher than the requested one.
    const group = { ...checks, pids_limit: 128 + overhead.pids }
    expect(enforcedLimits(limits, { checks: group, overhead, hasQuota: true })).not.toContain('pids')
  })
})

describe('the resources that a runtime itself needs', () => {
  test('are zero with the daemon’s kernel, and grow with the processes in gVisor', () => {
    const limits = { memoryBytes: 512 * MiB, cpus: 1, pids: 128, diskBytes: MiB }
    expect(overheadOf('plain', limits)).toEqual({ pids: 0, memoryBytes: 0 })
    expect(overheadOf('gvisor', limits)).toEqual({ pids: 1536, memoryBytes: 64 * MiB })
  })

  test('are estimated by name only until a container was probed', () => {
    const guesses = ['runc', 'crun', 'io.containerd.runc.v2', 'runsc', 'kata', 'anything'].map(
      (name) => guessNeeds(name).kind,
    )
    expect(guesses).toEqual(['plain', 'plain', 'plain', 'gvisor', 'gvisor', 'gvisor'])
    expect([kindOf({ gvisor: true }), kindOf({ gvisor: false }), kindOf({})]).toEqual(['gvisor', 'plain', 'plain'])
  })
})
