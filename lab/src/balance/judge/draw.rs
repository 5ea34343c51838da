//! Requests of a range, drawn one by one from its demand.

use rand::RngExt;
use rand::rngs::StdRng;

use crate::balance::demand::{Demand, Piece, Place};

/// Where the requests of one range go in one second.
pub(super) struct Draws<'a> {
    demand: &'a Demand,
    low: Place,
    high: Place,
    cells: f64,
    pieces: Vec<Piece>,
    all: f64,
}

impl<'a> Draws<'a> {
    pub(super) fn new(demand: &'a Demand, low: Place, high: Place) -> Self {
        let cut = |piece: &Piece| Piece {
            low: piece.low.max(low),
            high: piece.high.min(high),
            rate: piece.within(low, high),
        };
        let pieces: Vec<_> = demand.pieces.iter().map(cut).filter(|piece| piece.rate > 0.0).collect();
        let cells = demand.cells(low, high);
        let all = cells + pieces.iter().map(|piece| piece.rate).sum::<f64>();
        Self { demand, low, high, cells, pieces, all }
    }

    /// The place of one request.
    pub(super) fn place(&self, dice: &mut StdRng) -> Place {
        let mut at = dice.random::<f64>() * self.all;
        if at < self.cells {
            return self.demand.quantile(self.low, self.high, at / self.cells);
        }
        at -= self.cells;
        for piece in &self.pieces {
            if at < piece.rate {
                return dice.random_range(piece.low..piece.high);
            }
            at -= piece.rate;
        }
        self.low
    }
}
