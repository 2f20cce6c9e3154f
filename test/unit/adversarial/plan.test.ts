import { expect, test } from 'vitest'
import { readCases } from '../../../campaigns/adversarial/driver/case.ts'
import { planTable, plannedCases } from '../../../campaigns/adversarial/plan.ts'
import { SINGLED_OUT, wallsOf } from '../../../campaigns/adversarial/walls.ts'

const plan = plannedCases()

test('every case of the shared suites runs on at least one engine', () => {
  expect(plan.length).toBeGreaterThan(350)
  expect(plan.filter(({ engines }) => engines.length === 0).map(({ name }) => name)).toEqual([])
})

test('every case names its walls, and the table names only existing cases', () => {
  expect(plan.filter(({ walls }) => walls.length === 0).map(({ name }) => name)).toEqual([])
  const cases = readCases()
  expect(cases.filter((given) => wallsOf(given).length === 0).map(({ group }) => group)).toEqual(
    cases.filter(({ group }) => LATER_GROUPS.includes(group)).map(({ group }) => group),
  )
  expect(SINGLED_OUT.filter((id) => !cases.some((given) => given.id === id))).toEqual([])
})

test('cases of the walls kernel and engine run on Docker if they can run there', () => {
  const attacks = plan.filter(({ suite }) => suite !== 'conformance')
  const missing = attacks.filter(
    ({ walls, engines }) => walls.includes('kernel') && engines.includes('local') && !engines.includes('docker'),
  )
  // These attack resources that only sandboxes of the local engine share.
  const ofLocal = ['LOAD-01', 'SHARE-01', 'SHARE-02', 'SHARE-03', 'SHARE-04', 'SHARE-05']
  expect(missing.map(({ name }) => name.split(' ')[0])).toEqual(ofLocal)
})

test('cases that the runtime of a pod, its channel or its host decides run on Kubernetes', () => {
  const ids = plan
    .filter(({ suite, engines }) => suite === 'cases' && engines.includes('kubernetes'))
    .map(({ name }) => name.split(' ')[0])
  expect(ids).toEqual(expect.arrayContaining(['ISO-023', 'NET-006', 'RES-027', 'PRO-037', 'SEC-012', 'CTL-028']))
  expect(ids).not.toContain('ISO-011')
})

test('the table shows each case with its walls and engines, and counts', () => {
  const [first] = plan
  const table = planTable(plan)
  expect(table.split('\n')).toHaveLength(plan.length + 1)
  expect(table).toContain(first?.name)
  expect(table).toMatch(/^\d+ cases: local \d+, docker \d+, gvisor \d+, pyodide \d+, pyodide-box \d+, kubernetes \d+$/m)
})

/** Groups of cases that wait for a feature. */
const LATER_GROUPS = ['server', 'network-allowlist']
