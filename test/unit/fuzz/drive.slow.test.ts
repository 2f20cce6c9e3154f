import { expect, test } from 'vitest'
import { drive } from '../../../campaigns/fuzz/drive.ts'
import { withFigures } from '../../../campaigns/fuzz/figures.ts'
import { Hang } from '../../../campaigns/fuzz/hang.ts'

test('a case that throws, and an unhandled rejection, are findings with the command that repeats them', async () => {
  const { findings } = await drive({
    seed: 4,
    side: 'host',
    count: 2,
    make: () => ({
      property: 'p',
      pieces: [Buffer.from('bytes')],
      check() {
        void Promise.reject(new Error('stray'))
        throw new Error('broken')
      },
    }),
  })
  expect(findings.map(({ problem }) => /broken|stray/.exec(problem)?.[0])).toEqual([
    'broken',
    'broken',
    'stray',
    'stray',
  ])
  expect(findings[0]?.command).toBe('npm run fuzz -- --seed 4 --only host:0')
})

test('a hang is a finding and counted as a hang, in the figures too', async () => {
  const problems = [new Error('broken'), new Hang('nothing settled'), new Hang('nothing settled')]
  const report = await drive({
    seed: 4,
    side: 'host',
    count: problems.length,
    make: () => ({
      property: 'p',
      pieces: [],
      check() {
        throw problems.pop() as Error
      },
    }),
  })
  expect([report.findings.length, report.hangs]).toEqual([3, 2])
  const page = '<!-- figures: npm run fuzz -- --write -->\n<!-- end of figures -->'
  expect(withFigures(page, [{ ...report, seconds: 7 }], 4, 'here')).toContain('\n| host | 3 | 7 | 1 | 2 | ')
})
