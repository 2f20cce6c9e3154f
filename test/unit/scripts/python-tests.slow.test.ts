import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { findPythons } from '../../../scripts/find-pythons.ts'
import { runUnittests } from '../../../scripts/python-tests.ts'

const pythons = findPythons()

test('a Python >= 3.10 is found', () => {
  expect(pythons.length).toBeGreaterThan(0)
})

describe.each(pythons)('the unit tests run by Python $version', ({ executable }) => {
  let top: string
  beforeEach(() => {
    top = mkdtempSync(join(tmpdir(), 'sandglass-unittest-'))
    mkdirSync(join(top, 'tests'))
  })
  afterEach(() => rmSync(top, { recursive: true, force: true }))
  const write = (body: string): void => writeFileSync(join(top, 'tests', 'test_it.py'), `import unittest\n${body}`)

  test('are counted by test, with any outcome', async () => {
    write(`
class T(unittest.TestCase):
    def test_passes(self): pass
    def test_fails(self): self.fail()
    def test_raises(self): raise ValueError
    def test_two_failing_subtests(self):
        for n in range(3):
            with self.subTest(n): self.assertEqual(n, 0)
    def test_a_skipped_subtest(self):
        with self.subTest(1): self.skipTest('part')
    @unittest.expectedFailure
    def test_expected(self): self.fail()
    @unittest.expectedFailure
    def test_unexpected(self): pass
    @unittest.skip('no reason')
    def test_skipped(self): pass
`)
    const run = await runUnittests(executable, top)
    expect(run.counts).toEqual({ passed: 3, failed: 4, skipped: 1 })
    expect(run.skips.join('\n')).toContain('no reason')
  })

  test('count one failure for a class whose set-up fails', async () => {
    write(`
class T(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise ValueError
    def test_a(self): pass
    def test_b(self): pass
`)
    expect((await runUnittests(executable, top)).counts).toEqual({ passed: 0, failed: 1, skipped: 0 })
  })

  test.each<[string, string]>([
    ['a file that can not be imported', 'import nothing_of_that_name'],
    ['a folder without tests', ''],
    ['an interpreter that ends early', 'import os; os._exit(0)'],
    ['an interpreter that is killed', 'import os; os.kill(os.getpid(), 9)'],
  ])('count one failure for %s', async (_what, body) => {
    write(body)
    expect((await runUnittests(executable, top)).counts).toEqual({ passed: 0, failed: 1, skipped: 0 })
  })

  test('may import from each other when they are a package', async () => {
    writeFileSync(join(top, 'tests', '__init__.py'), '')
    writeFileSync(join(top, 'tests', 'base.py'), 'import unittest\nclass Base(unittest.TestCase): pass')
    write('from .base import Base\nclass T(Base):\n    def test_a(self): pass\n')
    expect((await runUnittests(executable, top)).counts).toEqual({ passed: 1, failed: 0, skipped: 0 })
  })
})
