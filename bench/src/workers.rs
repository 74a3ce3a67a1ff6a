//! Makes runs, several at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The runs that are left to make.
#[derive(Clone)]
pub struct Claims {
    begun: Arc<AtomicUsize>,
    total: usize,
}

impl Claims {
    /// Claims the next run. Returns false if all are claimed.
    pub fn claim(&self) -> bool {
        self.begun.fetch_add(1, Ordering::Relaxed) < self.total
    }
}

/// Makes `total` runs, `at_once` at a time. Every worker claims runs until none is left.
pub fn run_workers<W>(
    at_once: usize,
    total: usize,
    mut worker: impl FnMut(Claims) -> W,
) -> anyhow::Result<()>
where
    W: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let claims = Claims {
        begun: Arc::default(),
        total,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let workers = (0..at_once).map(|_| tokio::spawn(worker(claims.clone())));
        let workers: Vec<_> = workers.collect();
        for worker in workers {
            worker.await??;
        }
        Ok(())
    })
}
