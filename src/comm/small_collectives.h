// Small things that ranks tell each other between steps: yes or no, numbers, texts.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"

namespace thimble {

// Every rank's number, by rank.
std::vector<double> gathered(Communicator& ranks, double own);
// Whether any rank says so.
bool any_rank(Communicator& ranks, bool own);
// Sums of all ranks' numbers, in the order of the ranks. REQUIRES: as many on each.
void add_up(Communicator& ranks, std::vector<double>& numbers);

// The first rank that has another text than rank 0; 0: none.
size_t first_other_rank(const std::vector<std::string>& texts);

// Rank 0's text, on every rank.
std::string text_of_first(Communicator& ranks, std::string text);
// Every rank's text, by rank.
std::vector<std::string> gathered(Communicator& ranks, const std::string& own);

}  // namespace thimble
