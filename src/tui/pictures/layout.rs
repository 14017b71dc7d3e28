//! Which tables of a step are shown, and where: those that matter most first, side by side where they fit.

use ratatui::layout::Rect;

/// Columns between tables, with the sign of the formula in their middle.
pub(super) const GAP: u16 = 3;
/// Lines that a table is given before another one is left out for it: heading, labels, rows, how many there are.
const LEAST: u16 = 5;
/// Narrowest window of a table that is wider than the screen.
const NARROWEST: u16 = 30;

/// What a table would like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    pub width: u16,
    pub height: u16,
    /// How much it matters: 0 is always shown, then 1, and so on.
    pub rank: u8,
    /// Columns before it, where another table is there.
    pub gap: u16,
    /// Columns that it can use where there is room.
    pub most: u16,
}

/// Tables side by side, in their order, with the columns that each has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Band {
    pub tables: Vec<(usize, u16)>,
    pub height: u16,
}

/// Where tables go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub bands: Vec<Band>,
    /// Tables that there is no room for.
    pub left_out: Vec<usize>,
}

impl Plan {
    /// Places the tables that fit in `area`; a line below them is kept for the names of those that do not.
    pub fn new(wishes: &[Wish], area: Rect) -> Self {
        if wishes.is_empty() || area.is_empty() {
            return Self::default();
        }
        let all: Vec<usize> = (0..wishes.len()).collect();
        if let Some(bands) = fit(wishes, &all, area.width, area.height) {
            return Self { bands, left_out: Vec::new() };
        }
        let height = area.height - u16::from(area.height > LEAST / 2);
        let mut order = all;
        order.sort_by_key(|i| wishes[*i].rank);
        let mut chosen: Vec<usize> = Vec::new();
        let mut plan = Self::default();
        for table in order {
            let mut more = chosen.clone();
            more.push(table);
            more.sort_unstable();
            match fit(wishes, &more, area.width, height) {
                Some(bands) => (chosen, plan.bands) = (more, bands),
                None => plan.left_out.push(table),
            }
        }
        plan.left_out.sort_unstable();
        plan
    }
}

/// Lines that all tables would like at this width.
pub(super) fn wanted(wishes: &[Wish], width: u16) -> u16 {
    let all: Vec<usize> = (0..wishes.len()).collect();
    height_of(&bands(wishes, &all, width, u16::MAX))
}

fn height_of(bands: &[Band]) -> u16 {
    let between = u16::try_from(bands.len().saturating_sub(1)).unwrap_or(u16::MAX);
    let lines = bands.iter().map(|b| b.height);
    lines.fold(between, u16::saturating_add)
}

/// Bands of these tables no higher than `height`, each table as high as it can be; a single one always fits.
fn fit(wishes: &[Wish], tables: &[usize], width: u16, height: u16) -> Option<Vec<Band>> {
    let mut tried = (LEAST.min(height)..=height).rev().map(|most| {
        let bands = bands(wishes, tables, width, most);
        (height_of(&bands) <= height).then_some(bands)
    });
    tried.find_map(|bands| bands)
}

fn bands(wishes: &[Wish], tables: &[usize], width: u16, most: u16) -> Vec<Band> {
    let mut bands: Vec<Band> = Vec::new();
    let mut used = 0u16;
    for &table in tables {
        let wish = wishes[table];
        // Windows of the operands of a product are shown side by side: the row next to the column that it meets.
        let half = width.saturating_sub(GAP) / 2;
        let taken = if wish.width > width && wish.rank > 0 && half >= NARROWEST { half } else { wish.width.min(width) };
        let height = wish.height.min(most);
        match bands.last_mut() {
            Some(band) if used.saturating_add(wish.gap).saturating_add(taken) <= width => {
                band.tables.push((table, taken));
                band.height = band.height.max(height);
                used = used.saturating_add(wish.gap).saturating_add(taken);
            }
            _ => {
                bands.push(Band { tables: vec![(table, taken)], height });
                used = taken;
            }
        }
    }
    for band in &mut bands {
        widen(band, wishes, width);
    }
    bands
}

/// Windows share the columns that are left in their band.
fn widen(band: &mut Band, wishes: &[Wish], width: u16) {
    let gaps = band.tables.iter().skip(1).map(|(t, _)| wishes[*t].gap).sum::<u16>();
    let used = band.tables.iter().map(|(_, w)| w).sum::<u16>() + gaps;
    let mut left = width.saturating_sub(used);
    let mut windows = band.tables.iter().filter(|(t, w)| wishes[*t].width > *w).count() as u16;
    for (table, taken) in &mut band.tables {
        let more = wishes[*table].width.saturating_sub(*taken);
        if more > 0 {
            let share = (left / windows).min(more);
            *taken += share;
            left -= share;
            windows -= 1;
        }
    }
    // What is still free lets the others grow.
    let mut others = band.tables.iter().filter(|(t, w)| wishes[*t].most > *w).count() as u16;
    for (table, taken) in &mut band.tables {
        let more = wishes[*table].most.saturating_sub(*taken);
        if more > 0 {
            let share = (left / others).min(more);
            *taken += share;
            left -= share;
            others -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(width: u16, height: u16, rank: u8) -> Wish {
        Wish { width, height, rank, gap: GAP, most: width }
    }

    fn placed(plan: &Plan) -> Vec<Vec<usize>> {
        let tables = |b: &Band| b.tables.iter().map(|(t, _)| *t).collect();
        plan.bands.iter().map(tables).collect()
    }

    #[test]
    fn what_matters_is_shown_first_and_what_is_left_out_is_known() {
        let wishes = [wish(20, 6, 3), wish(30, 6, 1), wish(30, 6, 1), wish(30, 7, 2), wish(30, 7, 0)];
        let plan = |width, height| Plan::new(&wishes, Rect::new(0, 0, width, height));
        let roomy = plan(120, 20);
        assert_eq!(placed(&roomy), [vec![0, 1, 2, 3], vec![4]]);
        assert!(roomy.left_out.is_empty());
        let small = plan(70, 15);
        assert_eq!(placed(&small), [vec![1, 2], vec![3, 4]]);
        assert_eq!(small.left_out, [0]);
        let smallest = plan(70, 2);
        assert_eq!(placed(&smallest), [vec![1, 4]]);
        assert_eq!(plan(10, 1).left_out, [0, 1, 2, 3]);
        assert_eq!(Plan::new(&wishes, Rect::default()), Plan::default());
    }

    #[test]
    fn large_operands_stand_side_by_side_as_windows_over_their_result() {
        let wishes = [wish(5000, 9, 1), wish(5000, 770, 1), wish(5000, 3, 1), wish(5000, 9, 0)];
        let area = Rect::new(0, 0, 103, 40);
        let plan = Plan::new(&wishes, area);
        assert_eq!(placed(&plan), [vec![0, 1], vec![2], vec![3]]);
        assert!(height_of(&plan.bands) <= area.height);
        let widths = |b: &Band| b.tables.iter().map(|(_, w)| *w).collect::<Vec<_>>();
        assert_eq!(widths(&plan.bands[0]), [50, 50]);
        assert_eq!(widths(&plan.bands[1]), [103]);
        assert_eq!(widths(&plan.bands[2]), [103]);
        assert!(plan.bands[0].height > 20);
        // The result keeps its lines where there are few.
        let plan = Plan::new(&wishes, Rect::new(0, 0, 103, 12));
        assert!(placed(&plan).concat().contains(&3), "{plan:?}");
    }
}
