// The Free Spoken Digit Dataset: recordings of single digits, DIGIT_SPEAKER_INDEX.wav, 8,000 samples a
// second. A record is the recording, its loudness made equal, cut into frames of as many samples as the model
// reads at a time. A longer recording is cut off, and a shorter one comes after silence, so that all of them
// end at the model's last frame. Where asked for, a frame is the spectrum of twice as many samples.
// Of every digit of every speaker, the recordings 0 to 4 are for testing.
//
// The files are many and small: opening the set puts their samples, one recording behind the other, into a
// nameless file on disk.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <numbers>
#include <system_error>

#include "base/error.h"
#include "base/field.h"
#include "base/io/file.h"
#include "base/io/sha256.h"
#include "data/dataset.h"
#include "data/format/wav.h"

namespace thimble {
namespace {

namespace fs = std::filesystem;

constexpr int kDigits = 10;
constexpr int kRate = 8000;
constexpr int kTested = 5;           // recordings of a digit and speaker
constexpr int64_t kMostBins = 1024;  // of a spectrum

enum class Frames : uint8_t { samples, spectrum };
std::string_view name_of(Frames frames) {
  return frames == Frames::samples ? "samples" : "spectrum";
}

struct Own {
  Frames frames = Frames::samples;
};

void fields(OwnSettings& own, Fields& list) {
  list.choice("frames", "kind of frames", 2, own.of<Own>().frames,
              {.help = "What a model reads of audio: samples or spectrum",
               .more = "`spoken_digits`: what a model reads of audio: `samples`, or the `spectrum` "
                       "of frames of twice as many; see [data](data.md#spoken_digits)",
               .affects = affects::numerics,
               .training = true});
}

// log(0.1 + |DFT|) of a frame under Hann's window, its lower half: as many numbers as half its samples.
class Spectrum {
 public:
  explicit Spectrum(int64_t bins)
      : bins_(static_cast<size_t>(bins)), turns_(2 * bins_), window_(2 * bins_) {
    const double full = 2 * std::numbers::pi / static_cast<double>(turns_.size());
    for (size_t i = 0; i < turns_.size(); ++i) {
      const double angle = full * static_cast<double>(i);
      turns_[i] = {std::cos(angle), std::sin(angle)};
      window_[i] = 0.5 - 0.5 * std::cos(angle);
    }
  }
  size_t samples() const { return turns_.size(); }

  // REQUIRES: as many samples as it takes. They are overwritten.
  void of(std::span<float> frame, std::span<float> out) const {
    for (size_t i = 0; i < frame.size(); ++i) frame[i] *= static_cast<float>(window_[i]);
    for (size_t k = 0; k < bins_; ++k) {
      double along = 0, across = 0;
      for (size_t i = 0, turn = 0; i < frame.size(); ++i) {
        along += static_cast<double>(frame[i]) * turns_[turn].first;
        across += static_cast<double>(frame[i]) * turns_[turn].second;
        turn += k;
        if (turn >= turns_.size()) turn -= turns_.size();
      }
      out[k] = static_cast<float>(std::log(0.1 + std::hypot(along, across)));
    }
  }

 private:
  size_t bins_;
  std::vector<std::pair<double, double>> turns_;
  std::vector<double> window_;
};

struct Recording {
  int64_t begin = 0;  // sample
  int64_t samples = 0;
  float scale = 1;  // to a mean square of one
  int32_t digit = 0;
};

// "7_jackson_32.wav": 7 and 32.
bool parse_name(const std::string& name, int32_t& digit, int& index) {
  const size_t bar = name.rfind('_');
  if (!name.ends_with(".wav") || name.size() < 8 || name[1] != '_' || bar == 1 ||
      bar == std::string::npos) {
    return false;
  }
  digit = name[0] - '0';
  const char* end = name.data() + name.size() - 4;
  const auto [stop, error] = std::from_chars(name.data() + bar + 1, end, index);
  return digit >= 0 && digit < kDigits && error == std::errc() && stop == end;
}

std::vector<std::string> recordings_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end;
       entry.increment(ignored)) {
    int32_t digit = 0;
    int index = 0;
    std::string name = entry->path().filename().string();
    if (parse_name(name, digit, index)) names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  return names;
}

// The folder itself, or the one inside it that has them.
std::string folder_of_recordings(const std::string& folder) {
  for (const char* inner : {"", "/recordings", "/free-spoken-digit-dataset-master/recordings",
                            "/free-spoken-digit-dataset-1.0.10/recordings"}) {
    if (!recordings_in(folder + inner).empty()) return folder + inner;
  }
  user_error(
      "there are no recordings (7_jackson_32.wav) in '{}'; get them with `thimble data get "
      "spoken_digits`",
      folder);
}

class SpokenDigits final : public Dataset {
 public:
  SpokenDigits(const std::string& given, int64_t length, int64_t features, Frames frames)
      : samples_(read_all(folder_of_recordings(given))) {
    user_check(frames == Frames::samples || features <= kMostBins,
               "a spectrum has {} numbers at most, and the model reads {} at a time; choose fewer "
               "--features",
               kMostBins, features);
    if (frames == Frames::spectrum) spectrum_.emplace(features);
    user_check(!train_.empty() && !test_.empty(),
               "the recordings in '{}' are too few: some with an index below {} (for testing) and "
               "some above are wanted",
               given, kTested);
    info_ = {.name = "spoken_digits",
             .train_count = std::ssize(train_),
             .test_count = std::ssize(test_),
             .fields = {{.name = "sequence",
                         .dtype = DType::f32,
                         .shape = {length, features},
                         .strided = true},
                        {.name = "label", .dtype = DType::i32, .limit = kDigits, .pad = -1}},
             .train_sha256 = hash_.hex()};
  }

  const DatasetInfo& info() const override { return info_; }

  void read(Split split, int64_t index, std::span<const RecordPart> parts) const override {
    const Recording& recording =
        (split == Split::train ? train_ : test_)[static_cast<size_t>(index)];
    if (parts[1].data != nullptr) parts[1].all<int32_t>()[0] = recording.digit;
    if (parts[0].data == nullptr) return;
    std::array<float, 2 * kMostBins> whole;
    const std::span<float> samples = std::span(whole).first(spectrum_ ? spectrum_->samples() : 0);
    const int64_t step = spectrum_ ? std::ssize(samples) : info_.fields[0].shape[1];
    const int64_t room = parts[0].entries * step;
    int64_t at = std::min(recording.samples - room, int64_t{0});  // below 0: silence
    for (int64_t frame = 0; frame < parts[0].entries; ++frame) {
      const std::span<float> out = parts[0].at<float>(frame);
      read_samples(recording, at, spectrum_ ? samples : out);
      if (spectrum_) spectrum_->of(samples, out);
      at += step;
    }
  }

 private:
  // The recording from sample `begin` on; before its first one there is silence. REQUIRES: it goes on to the
  // end of `out`.
  void read_samples(const Recording& recording, int64_t begin, std::span<float> out) const {
    std::array<int16_t, 256> block;
    for (size_t done = 0; done < out.size();) {
      const std::span<float> part = out.subspan(done, std::min(block.size(), out.size() - done));
      const auto silent = static_cast<size_t>(std::clamp<int64_t>(-begin, 0, std::ssize(part)));
      std::ranges::fill(part.first(silent), 0.0f);
      const std::span<int16_t> read(block.data(), part.size() - silent);
      const int64_t first = begin + static_cast<int64_t>(silent);
      if (!read.empty()) {
        samples_.read_at(2 * (recording.begin + first), std::as_writable_bytes(read));
      }
      for (size_t i = 0; i < read.size(); ++i) {
        part[silent + i] = static_cast<float>(read[i]) * recording.scale;
      }
      done += part.size();
      begin += std::ssize(part);
    }
  }

  ReadFile read_all(const std::string& folder) {
    SpoolFile spool("recordings of '" + folder + "'");
    int64_t begin = 0;
    for (const std::string& name : recordings_in(folder)) {
      const std::vector<int16_t> samples = read_wav(folder + "/" + name, kRate);
      double squares = 0;
      for (const int16_t sample : samples) squares += static_cast<double>(sample) * sample;
      const double mean = std::sqrt(squares / static_cast<double>(samples.size()));
      Recording recording = {begin, std::ssize(samples),
                             static_cast<float>(1 / std::max(mean, 1.0))};
      int index = 0;
      parse_name(name, recording.digit, index);
      (index < kTested ? test_ : train_).push_back(recording);
      spool.write(std::as_bytes(std::span(samples)));
      hash_.update(std::as_bytes(std::span(samples)));
      hash_.update(std::as_bytes(std::span(&recording.digit, 1)));
      begin += recording.samples;
    }
    return std::move(spool).finish();
  }

  std::vector<Recording> train_, test_;
  Sha256 hash_;
  ReadFile samples_;                  // behind what reading them fills in
  std::optional<Spectrum> spectrum_;  // none: samples as they are
  DatasetInfo info_;
};

std::unique_ptr<Dataset> open(const DataRequest& request) {
  const RecordField* wanted = find_field(request.wanted, "sequence");
  const bool sized = wanted != nullptr && wanted->shape.rank() == 2;
  return std::make_unique<SpokenDigits>(request.folder, sized ? wanted->shape[0] : 64,
                                        sized ? wanted->shape[1] : 50,
                                        request.own_of<Own>("spoken_digits").frames);
}

}  // namespace

extern const DatasetDef data_spoken_digits{
    "spoken_digits", "3,000 recordings of spoken digits as raw audio, 10 classes (--data-dir)",
    open, "get them with `thimble data get spoken_digits` and name the folder", fields};

}  // namespace thimble
