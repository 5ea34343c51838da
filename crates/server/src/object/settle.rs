//! What requests do that meet a change of several names at a name: they finish it if it is committed, and undo it if it is
//! not and stands in their way. `protocol::object::intent` has the steps and says why they are safe.

use rangehold_engine::NamesStep;
use rangehold_map::key::ObjectRow;
use rangehold_protocol::object::generation::{Generation, Head, Intent};
use rangehold_protocol::object::intent::{Decided, Decision, End, Forget, Settle, Standing};
use rangehold_protocol::object::write::Name;
use tokio::time::{Instant, timeout_at};
use tracing::warn;

use super::ObjectService;
use super::changes::Window;
use super::failure::Failure;
use crate::limits::{INTENTS_MET_MAX, REQUEST_WITHIN};

impl ObjectService {
    /// The live generation of a name. If a change that is committed has taken it away, there is none, and the change is
    /// finished on the way.
    pub(super) async fn live(&self, of: Name<'_>) -> Result<Option<Generation>, Failure> {
        for _ in 0..INTENTS_MET_MAX {
            let row = self.row(of, &ObjectRow::Head).await?;
            let Some(Head { live, intent }) = row.map(|row| Head::decode(&row)).transpose()? else {
                return Ok(None);
            };
            let Some(intent) = intent else { return Ok(Some(live)) };
            match self.standing(of, &intent).await? {
                Standing::Stays => return Ok(Some(live)),
                Standing::Changed => {}
                Standing::Gone(sources) => {
                    if !self.finishes(of, &intent, &sources).await {
                        return Ok(None);
                    }
                }
            }
        }
        Err(Failure::moved_again())
    }

    /// What an intent that was read in the head of `of` means to a reader.
    pub(super) async fn standing(&self, of: Name<'_>, intent: &Intent) -> Result<Standing, Failure> {
        let at = Name { bucket: of.bucket, name: &intent.target };
        let decided = self.router.get(&at.key(&ObjectRow::Outcome(intent.id.as_str().into()))).await?;
        let head = match &decided {
            Some(_) => None,
            None => self.router.get(&of.key(&ObjectRow::Head)).await?,
        };
        Ok(Standing::of(intent, decided.as_ref(), head.as_ref())?)
    }

    /// Finishes a committed change that a reader has met. If that fails, the next request or the walk does it.
    pub(super) async fn finishes(&self, of: Name<'_>, intent: &Intent, sources: &[String]) -> bool {
        let at = Name { bucket: of.bucket, name: &intent.target };
        let finished = self.finish(at, &intent.id, sources, Instant::now() + REQUEST_WITHIN).await;
        if let Err(error) = &finished {
            warn!(%error, "a move that is committed stays unfinished for now");
        }
        finished.is_ok()
    }

    /// Ends a change that stands in the way of a write of `of`: finishes it if it is committed, else undoes it.
    pub(super) async fn settle(
        &self,
        of: Name<'_>,
        intent: &Intent,
        deadline: Instant,
    ) -> Result<(), Failure> {
        let at = Name { bucket: of.bucket, name: &intent.target };
        let Decided { decision, sources, .. } = self.judged(&Settle { at, intent }, None, deadline).await?;
        match decision {
            Decision::Committed => self.finish(at, &intent.id, &sources, deadline).await,
            Decision::Undone => {
                self.names_hook.after(NamesStep::Undone, at.name.to_owned()).await;
                self.clear(of, &intent.id, deadline).await
            }
        }
    }

    /// Takes the intent of a change that was undone, or will never be committed, from a source.
    pub(super) async fn clear(&self, of: Name<'_>, id: &str, deadline: Instant) -> Result<(), Failure> {
        self.judged(&End { of, id, decision: Decision::Undone }, None, deadline).await?;
        self.names_hook.after(NamesStep::Cleared, of.name.to_owned()).await;
        Ok(())
    }

    /// Ends the change of this id whose row at `at` is due to go. Returns whether there was something to change.
    pub(super) async fn forget(&self, at: Name<'_>, id: &str, deadline: Instant) -> Result<bool, Failure> {
        let row = self.router.get(&at.key(&ObjectRow::Outcome(id.into()))).await?;
        let Some(decided) = row.map(|row| Decided::decode(&row)).transpose()? else { return Ok(false) };
        match decided.decision {
            Decision::Committed => self.finish(at, id, &decided.sources, deadline).await.map(|()| true),
            Decision::Undone => Ok(self.judged(&Forget { at, id }, None, deadline).await?),
        }
    }

    /// Finishes a change that is committed.
    async fn finish(
        &self,
        at: Name<'_>,
        id: &str,
        sources: &[String],
        deadline: Instant,
    ) -> Result<(), Failure> {
        let window = self.window(at, deadline).await?;
        self.end_sources(&window, at, id, sources, deadline).await
    }

    /// Removes the sources of a change that is committed, and then the row that says so.
    pub(super) async fn end_sources(
        &self,
        _: &Window<'_>,
        at: Name<'_>,
        id: &str,
        sources: &[String],
        deadline: Instant,
    ) -> Result<(), Failure> {
        for name in sources {
            let of = Name { bucket: at.bucket, name };
            self.judged(&End { of, id, decision: Decision::Committed }, None, deadline).await?;
            self.names_hook.after(NamesStep::Ended, name.clone()).await;
        }
        self.judged(&Forget { at, id }, None, deadline).await?;
        self.names_hook.after(NamesStep::Forgotten, at.name.to_owned()).await;
        Ok(())
    }

    /// Opens a window for a commit, or for the end of its sources.
    pub(super) async fn window(&self, at: Name<'_>, deadline: Instant) -> Result<Window<'_>, Failure> {
        let window = timeout_at(deadline, self.changes.window(at.bucket.id)).await;
        window.map_err(|_| Failure::unavailable("Listings have held this change up. Try again."))
    }
}
