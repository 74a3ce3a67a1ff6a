//! An index of the component signs of vectors. It preselects the vectors that are worth comparing in full.
//!
//! The number of differing signs (the Hamming distance) approximates the distance of two vectors. It is counted
//! for many vectors at once: the signs are stored by component, one `u64` for sixty-four vectors, and added
//! with bit-sliced counters. The counts are compared with a limit in the same way, so no work is done for a
//! single vector unless it is near.

use windlass_embed::Embedding;

/// How many `u64` are processed together, so that the compiler uses vector instructions.
const WORDS: usize = 2;

/// How many vectors a block has.
const BLOCK: usize = WORDS * 64;

/// How many components are added before the carry goes to the higher digits.
const STEP: usize = 8;

/// How many components are compared. More would take longer and improve recall little.
const COMPONENTS: usize = 128;

/// How many digits the counts have, so that all components can differ.
const DIGITS: usize = 8;

/// One block in this many is sampled to estimate the limit.
const SAMPLED_BLOCKS: usize = 16;

/// A component's signs for the vectors of a block, or one digit of their counts.
type Plane = [u64; WORDS];

/// The Hamming distance of each vector of a block to another one: the binary digits, lowest first.
type Counts = [Plane; DIGITS];

/// The signs of the components of vectors.
#[derive(Debug, Clone)]
pub(super) struct SignIndex {
    rows: usize,
    /// How many components are compared, padded to a multiple of [`STEP`] with signs that never differ.
    planes: usize,
    /// The mean of all vectors. It is subtracted before signs are taken, because the vectors lie to one side.
    mean: Vec<f32>,
    /// The planes of the first block, then those of the second, and so on.
    blocks: Vec<Plane>,
}

impl SignIndex {
    /// Indexes these vectors, which must have the same dimension.
    pub(super) fn build(vectors: &[Embedding]) -> Self {
        let dimension = vectors.first().map_or(0, Embedding::dimension);
        let mut mean = vec![0.0; dimension.min(COMPONENTS)];
        for vector in vectors {
            for (sum, value) in mean.iter_mut().zip(vector.as_slice()) {
                *sum += value / vectors.len() as f32;
            }
        }
        let planes = mean.len().next_multiple_of(STEP);
        let mut blocks = vec![[0; WORDS]; planes * vectors.len().div_ceil(BLOCK)];
        for (row, vector) in vectors.iter().enumerate() {
            let block = &mut blocks[row / BLOCK * planes..][..planes];
            let (word, place) = (row % BLOCK / 64, row % 64);
            for (plane, (value, mean)) in block.iter_mut().zip(vector.as_slice().iter().zip(&mean))
            {
                plane[word] |= u64::from(value > mean) << place;
            }
        }
        Self {
            rows: vectors.len(),
            planes,
            mean,
            blocks,
        }
    }

    /// The rows with the smallest Hamming distance to a vector, among those that pass the filter: at least `count`
    /// of them, or all, including all ties with the last.
    pub(super) fn nearest(
        &self,
        vector: &Embedding,
        count: usize,
        fits: impl Fn(usize) -> bool,
    ) -> Vec<usize> {
        let mut wanted = vec![0; self.planes];
        let signs = vector.as_slice().iter().zip(&self.mean);
        for (wanted, (value, mean)) in wanted.iter_mut().zip(signs) {
            *wanted = if value > mean { u64::MAX } else { 0 };
        }
        let blocks = self.blocks.chunks_exact(self.planes.max(1));
        let counts: Vec<Counts> = blocks
            .map(|block| hamming_distances(block, &wanted))
            .collect();
        // Estimates the limit from a sample of the blocks. If it is too low, it is raised until there are enough
        // rows.
        let are_enough = |limit: usize| {
            let some = counts.iter().step_by(SAMPLED_BLOCKS);
            let near = some.flat_map(|counts| at_most(counts, limit));
            near.map(u64::count_ones).sum::<u32>() as usize >= count.div_ceil(SAMPLED_BLOCKS)
        };
        let mut limit = (0..self.planes)
            .collect::<Vec<_>>()
            .partition_point(|limit| !are_enough(*limit));
        let mut found: Vec<usize> = Vec::new();
        let mut seen = counts.iter().map(|_| [0; WORDS]).collect::<Vec<Plane>>();
        loop {
            for (number, (counts, seen)) in counts.iter().zip(&mut seen).enumerate() {
                let near = at_most(counts, limit);
                for word in 0..WORDS {
                    let mut new = near[word] & !seen[word];
                    while new != 0 {
                        let row = number * BLOCK + word * 64 + new.trailing_zeros() as usize;
                        new &= new - 1;
                        if row < self.rows && fits(row) {
                            found.push(row);
                        }
                    }
                }
                *seen = near;
            }
            if found.len() >= count || limit >= self.planes {
                return found;
            }
            limit += 1;
        }
    }
}

/// The Hamming distances of a block.
fn hamming_distances(block: &[Plane], wanted: &[u64]) -> Counts {
    let mut ones = [0; WORDS];
    let mut twos = [0; WORDS];
    let mut fours = [0; WORDS];
    let mut higher = [[0; WORDS]; DIGITS - 3];
    for (planes, wanted) in block.chunks_exact(STEP).zip(wanted.chunks_exact(STEP)) {
        let differ = |place: usize| -> Plane { planes[place].map(|signs| signs ^ wanted[place]) };
        let two = [
            add(&mut ones, differ(0), differ(1)),
            add(&mut ones, differ(2), differ(3)),
            add(&mut ones, differ(4), differ(5)),
            add(&mut ones, differ(6), differ(7)),
        ];
        let four = [
            add(&mut twos, two[0], two[1]),
            add(&mut twos, two[2], two[3]),
        ];
        let mut carried = add(&mut fours, four[0], four[1]);
        for digit in &mut higher {
            for word in 0..WORDS {
                let sum = digit[word] ^ carried[word];
                carried[word] &= digit[word];
                digit[word] = sum;
            }
        }
    }
    let mut counts = [[0; WORDS]; DIGITS];
    counts[..3].copy_from_slice(&[ones, twos, fours]);
    counts[3..].copy_from_slice(&higher);
    counts
}

/// Adds two digits to a third and returns the carry.
#[inline(always)]
fn add(digit: &mut Plane, one: Plane, two: Plane) -> Plane {
    let mut carried = [0; WORDS];
    for word in 0..WORDS {
        let both = digit[word] ^ one[word];
        carried[word] = (digit[word] & one[word]) | (both & two[word]);
        digit[word] = both ^ two[word];
    }
    carried
}

/// Which counts of a block are at most a limit.
fn at_most(counts: &Counts, limit: usize) -> Plane {
    let (mut below, mut same) = ([0; WORDS], [u64::MAX; WORDS]);
    for (place, digit) in counts.iter().enumerate().rev() {
        let wanted = if limit >> place & 1 == 1 { u64::MAX } else { 0 };
        for word in 0..WORDS {
            below[word] |= same[word] & !digit[word] & wanted;
            same[word] &= !(digit[word] ^ wanted);
        }
    }
    std::array::from_fn(|word| below[word] | same[word])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The Hamming distances, counted one by one.
    fn hamming_one_by_one(vectors: &[Embedding], vector: &Embedding) -> Vec<usize> {
        let signs = SignIndex::build(vectors);
        let differ = |one: &Embedding| {
            let parts = one.as_slice().iter().zip(vector.as_slice());
            parts
                .zip(&signs.mean)
                .filter(|((one, two), mean)| (one > mean) != (two > mean))
                .count()
        };
        vectors.iter().map(differ).collect()
    }

    fn embedding(values: Vec<f32>) -> Embedding {
        Embedding::new(values).unwrap()
    }

    fn vectors() -> impl Strategy<Value = Vec<Embedding>> {
        (1..40_usize).prop_flat_map(|dimension| {
            let vector = proptest::collection::vec(-1.0..1.0_f32, dimension).prop_map(embedding);
            proptest::collection::vec(vector, 2..700)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn nearest_returns_the_rows_with_the_smallest_hamming_distance(
            vectors in vectors(), count in 1..50_usize, every in 1..5_usize
        ) {
            let (query, vectors) = vectors.split_first().unwrap();
            let differ = hamming_one_by_one(vectors, query);
            let fits = |row: usize| row.is_multiple_of(every);
            let found = SignIndex::build(vectors).nearest(query, count, fits);
            let fitting: Vec<usize> = (0..vectors.len()).filter(|row| fits(*row)).collect();
            prop_assert!(found.len() >= count.min(fitting.len()));
            let limit = found.iter().map(|row| differ[*row]).max().unwrap();
            let mut found = found;
            found.sort_unstable();
            let near = fitting.into_iter().filter(|row| differ[*row] <= limit);
            prop_assert_eq!(found, near.collect::<Vec<_>>());
        }
    }

    #[test]
    fn vectors_with_more_components_than_are_compared_are_indexed() {
        let all = |value: f32| embedding(vec![value; 1_000]);
        let vectors = [all(1.0), all(-1.0), all(1.0)];
        let signs = SignIndex::build(&vectors);
        assert_eq!(signs.nearest(&all(-1.0), 1, |_| true), [1]);
        assert_eq!(signs.nearest(&all(1.0), 1, |_| true), [0, 2]);
        assert!(
            SignIndex::build(&[])
                .nearest(&all(1.0), 1, |_| true)
                .is_empty()
        );
    }
}
