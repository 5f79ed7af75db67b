#include "base/io/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "../file_support.h"
#include "base/error.h"

namespace thimble {
namespace {

std::string read_text(const ReadFile& file, int64_t offset, size_t length) {
  std::string text(length, '\0');
  file.read_at(offset, std::as_writable_bytes(std::span(text)));
  return text;
}

TEST(AtomicFile, AppearsOnlyOnCommit) {
  const TemporaryFolder folder;
  const std::string path = folder / "weights";
  AtomicFile file(path);
  file.write("thim");
  file.write("ble");
  EXPECT_FALSE(std::filesystem::exists(path));
  file.commit();
  EXPECT_EQ(slurp(path), "thimble");
  EXPECT_EQ(folder.entries(), 1);
}

TEST(AtomicFile, LeavesTheOldFileAndNothingElseWithoutCommit) {
  const TemporaryFolder folder;
  const std::string path = folder / "weights";
  write_file(path, "old");
  {
    AtomicFile file(path);
    file.write("new");
    EXPECT_EQ(folder.entries(), 2);
  }
  EXPECT_EQ(slurp(path), "old");
  EXPECT_EQ(folder.entries(), 1);
}

TEST(AtomicFile, FollowsALinkAndRefusesWhatIsNotAFile) {
  const TemporaryFolder folder;
  write_file(folder / "real", "old");
  std::filesystem::create_symlink(folder / "real", folder / "link");
  write_file(folder / "link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_EQ(slurp(folder / "real"), "new");

  EXPECT_TRUE(throws_saying<UserError>([] { AtomicFile file("/dev/null"); },
                                       "'/dev/null': it is a device or pipe; name a regular file"));
  EXPECT_TRUE(throws_saying<UserError>([&] { AtomicFile file(folder.path()); },
                                       "it is a folder; name a file"));
  EXPECT_TRUE(throws_saying<UserError>([&] { AtomicFile file(folder / ""); }, "add a file name"));
}

TEST(AtomicFile, SaysWhyAFolderCannotBeWritten) {
  const TemporaryFolder folder;
  EXPECT_TRUE(throws_saying<UserError>([&] { AtomicFile file(folder / "missing/weights"); },
                                       "cannot create '" + folder.path() + "/missing/weights'",
                                       "there is no such file or folder; check the spelling"));
  spill(folder / "file", "");
  EXPECT_TRUE(throws_saying<UserError>([&] { AtomicFile file(folder / "file/weights"); },
                                       "a part of the path is a file"));
}

TEST(AtomicFile, SaysThatPermissionsForbidIt) {
  if (::geteuid() == 0) GTEST_SKIP() << "permissions do not stop root";
  const TemporaryFolder folder;
  ::chmod(folder.path().c_str(), 0500);
  EXPECT_TRUE(
      throws_saying<UserError>([&] { AtomicFile file(folder / "weights"); }, "permission denied"));
  ::chmod(folder.path().c_str(), 0700);
}

TEST(AtomicFile, SizeLimitIsAnErrorAndLeavesNothing) {
  const TemporaryFolder folder;
  struct rlimit old = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  struct rlimit small = old;
  small.rlim_cur = 1000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string message = message_of<UserError>([&] {
    AtomicFile file(folder / "weights");
    file.write(std::string(600, 'x'));
    file.write(std::string(600, 'x'));  // would raise SIGXFSZ, which kills
  });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old), 0);
  EXPECT_NE(message.find("would grow past the size limit; raise the limit"), std::string::npos);
  EXPECT_EQ(folder.entries(), 0);
}

TEST(WriteAll, FullDiskIsAnError) {
  const FileDescriptor full(::open("/dev/full", O_WRONLY));
  if (full.get() < 0) GTEST_SKIP() << "no /dev/full here";
  const std::array<std::byte, 10> bytes{};
  EXPECT_EQ(message_of<UserError>([&] { write_all(full.get(), bytes, "run/weights"); }),
            "cannot write 'run/weights': the disk is full; free some space or use a folder on "
            "another disk");
}

TEST(ReadFile, ReadsExactRanges) {
  const TemporaryFolder folder;
  spill(folder / "file", "0123456789");
  const ReadFile file(folder / "file");
  EXPECT_EQ(file.size(), 10);
  EXPECT_EQ(read_text(file, 3, 4), "3456");
  EXPECT_EQ(read_text(file, 10, 0), "");
  EXPECT_TRUE(throws_saying<UserError>([&] { read_text(file, 7, 4); },
                                       "it ends at byte 10, but bytes 7 to 11 are wanted",
                                       "truncated"));
}

TEST(ReadFile, OpensOnlyRegularFiles) {
  const TemporaryFolder folder;
  EXPECT_TRUE(throws_saying<UserError>(
      [&] { ReadFile file(folder / "nothing"); },
      "cannot open '" + folder.path() + "/nothing': there is no such file"));
  EXPECT_TRUE(throws_saying<UserError>([&] { ReadFile file(folder.path()); }, "it is a folder"));
  EXPECT_TRUE(
      throws_saying<UserError>([] { ReadFile file("/dev/zero"); }, "it is a device or pipe"));
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_TRUE(
      throws_saying<UserError>([&] { ReadFile file(folder / "pipe"); }, "it is a device or pipe"));
}

TEST(SpoolFile, HasNoNameAndReadsBack) {
  const TemporaryFolder folder;
  ::setenv("TMPDIR", folder.path().c_str(), 1);
  SpoolFile spool("archive.gz");
  ::unsetenv("TMPDIR");
  const std::array<std::byte, 3> bytes = {std::byte{'a'}, std::byte{'b'}, std::byte{'c'}};
  spool.write(bytes);
  EXPECT_EQ(folder.entries(), 0);
  const ReadFile file = std::move(spool).finish();
  EXPECT_EQ(file.size(), 3);
  EXPECT_EQ(read_text(file, 1, 2), "bc");
  EXPECT_TRUE(file.path().starts_with("archive.gz"));
}

TEST(EnsureDirectory, MakesFoldersAndLeavesThemEmpty) {
  const TemporaryFolder folder;
  ensure_directory(folder / "runs/today");
  EXPECT_TRUE(std::filesystem::is_directory(folder / "runs/today"));
  EXPECT_TRUE(std::filesystem::is_empty(folder / "runs/today"));
  ensure_directory(folder / "runs/today");
  spill(folder / "file", "");
  EXPECT_TRUE(throws_saying<UserError>([&] { ensure_directory(folder / "file"); },
                                       "cannot create the folder"));
  EXPECT_TRUE(throws_saying<UserError>([&] { ensure_directory(folder / "file/inside"); },
                                       "a part of the path is a file"));
  EXPECT_THROW(ensure_directory("/proc/thimble"), UserError);
}

}  // namespace
}  // namespace thimble
