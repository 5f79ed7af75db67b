// A translation data set in a folder, made of raw text.
//
//   source.dict, target.dict   the vocabularies (text/vocabulary.h)
//   codes.bpe                  merges that cut words into pieces; there need not be any
//   pairs.json                 what was done to a line before its pieces were numbered
//   train.pairs, valid.pairs   (data/format/pair_file.h), and test.pairs where that was asked for
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/io/sha256.h"
#include "text/preparation.h"
#include "text/vocabulary.h"

namespace thimble {

// Two files of a sentence a line, or one whose lines have both in columns apart by tabs.
struct ParallelFiles {
  std::string source;
  std::string target;     // empty: `source` has both,
  int source_column = 1;  // counted from 1,
  int target_column = 2;
};

struct PairOptions {
  std::string out;  // folder
  ParallelFiles train;
  ParallelFiles valid = {};  // no file: every so many of the training pairs
  ParallelFiles test = {};   // no file: none
  int64_t valid_every = 23;
  PreparationOptions source = {};
  PreparationOptions target = {};
  int64_t merges = 0;       // learnt from the training pairs; 0: none
  std::string codes = {};   // or read from here
  bool joint = false;       // one vocabulary for both languages
  int64_t least_count = 1;  // pieces that are rarer are unknown
  // Pairs whose sentences have fewer or more words than these, or so many times more than the
  // other, are left out.
  int64_t shortest = 1;
  int64_t longest = 175;
  double ratio = 1.5;  // 0: any
  std::function<void(const std::string& sentence)> say = {};
};

// UserError where a file is none, or two do not have the same number of lines. Nothing is written
// before all has been read.
void make_pairs(const PairOptions& options);

// Everything needed to translate raw text as the set's own.
struct PairSet {
  Preparation source;
  Preparation target;
  Vocabulary source_pieces;
  Vocabulary target_pieces;
  std::string digest;  // of both vocabularies and the merges, as in DatasetInfo::vocabulary_sha256
};
PairSet read_pair_set(const std::string& folder);

}  // namespace thimble
